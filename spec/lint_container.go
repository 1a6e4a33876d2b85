package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
)

// latestWithRollback warns of an image that changes without an update. A container whose pull policy is Always gets the newest image of
// the name at each start, also at a restart after a crash.
func (l *linter) latestWithRollback(c *Container) {
	_, _, rollback := l.pod.UpdateRule()
	policy := cmp.Or(c.ImagePullPolicy, DefaultPullPolicy(c.Image, len(l.pod.ArchivesOf(c)) > 0))
	named, err := reference.ParseDockerRef(c.Image)
	tagged, hasTag := named.(reference.Tagged)
	if !rollback || policy != PullAlways || err != nil || !hasTag || tagged.Tag() != "latest" {
		return
	}
	l.advise(CodeLatestWithRollback, "use a tag with a version, or set "+l.format.word("imagePullPolicy", string(PullIfNotPresent)),
		"is pulled at each start: a restart can change the image without a rollback", &c.Image)
}

// unprivilegedPort is the first port that a process without CAP_NET_BIND_SERVICE can use on a host, the default of
// net.ipv4.ip_unprivileged_port_start. In a pod network it is 0.
const unprivilegedPort = 1024

// lowPorts warns of ports on which a process cannot listen because it is not root. A program can have the capability by its file, unless
// the container excludes that.
func (l *linter) lowPorts(c *Container) {
	first := int32(0)
	if l.pod.HostNetwork {
		first = unprivilegedPort
	}
	if s := l.pod.SecurityContext; s != nil {
		for _, sysctl := range s.Sysctls {
			n, err := strconv.ParseInt(sysctl.Value, 10, 32)
			if err == nil && SysctlName(sysctl.Name) == "net.ipv4.ip_unprivileged_port_start" {
				first = int32(n)
			}
		}
	}
	if !l.neverRoot(c) || !bindsNoLowPorts(c.SecurityContext) {
		return
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		if p.ContainerPort >= first {
			continue
		}
		l.advise(CodeLowPort, "use a port from "+strconv.Itoa(int(first)), fmt.Sprintf(
			"only root can listen on port %d, below %d, net.ipv4.ip_unprivileged_port_start, and the container neither runs as root "+
				"nor can get CAP_NET_BIND_SERVICE", p.ContainerPort, first), &p.ContainerPort, p)
	}
}

// neverRoot reports whether the container does not run as root, whatever its image sets.
func (l *linter) neverRoot(c *Container) bool {
	var user *int64
	nonRoot := false
	if s := l.pod.SecurityContext; s != nil {
		user, nonRoot = s.RunAsUser, s.RunAsNonRoot != nil && *s.RunAsNonRoot
	}
	if s := c.SecurityContext; s != nil {
		user = cmp.Or(s.RunAsUser, user)
		if s.RunAsNonRoot != nil {
			nonRoot = *s.RunAsNonRoot
		}
	}
	return user != nil && *user != 0 || user == nil && nonRoot
}

// bindsNoLowPorts reports whether a process that is not root cannot get CAP_NET_BIND_SERVICE from the file of its program.
func bindsNoLowPorts(s *SecurityContext) bool {
	if s == nil {
		return false
	}
	if s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		return true
	}
	const capability, all = "NET_BIND_SERVICE", "ALL"
	switch c := s.Capabilities; {
	case c == nil || s.Privileged != nil && *s.Privileged:
		return false
	case slices.Contains(c.Drop, capability):
		return true
	default:
		return slices.Contains(c.Drop, all) && !slices.Contains(c.Add, capability)
	}
}

// memoryVolumes warns of volumes in memory that cannot be filled: their files count towards the memory limit of the container that writes
// them, and towards that of the pod.
func (l *linter) memoryVolumes() {
	for i := range l.pod.Volumes {
		v := &l.pod.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.Medium != "Memory" || v.EmptyDir.SizeLimit == nil {
			continue
		}
		limit, what := l.writable(v.Name)
		if what == "" || v.EmptyDir.SizeLimit.Cmp(limit) <= 0 {
			continue
		}
		l.advise(CodeMemoryVolumeOverLimit, "raise the memory limit, or set a smaller sizeLimit", fmt.Sprintf(
			"%s is larger than %s: its files count towards the limit, so that a container is out of memory before the volume is full",
			v.EmptyDir.SizeLimit.String(), what), v.EmptyDir.SizeLimit)
	}
}

// writable returns how much memory the containers together can have that write to a volume, and whose limit that is; empty: it has no
// limit.
func (l *linter) writable(volume string) (limit Quantity, what string) {
	var writers []string
	var own []string // the limits of those that have one
	for c := range l.pod.OwnContainers() {
		if !slices.ContainsFunc(c.VolumeMounts, func(m VolumeMount) bool { return m.Name == volume && !m.ReadOnly }) {
			continue
		}
		writers = append(writers, c.Name)
		if q := c.Resources.Limits[ResourceMemory]; q.Sign() > 0 {
			limit.Add(q)
			own = append(own, q.String())
		}
	}
	pod := l.pod.Bound(ResourceMemory)
	switch limited := len(writers) > 0 && len(own) == len(writers); {
	case len(writers) > 0 && pod.Sign() > 0 && (!limited || pod.Cmp(limit) < 0):
		return pod, "the memory limit of the pod, " + pod.String()
	case !limited:
		return limit, ""
	case len(writers) == 1:
		return limit, fmt.Sprintf("the memory limit of container %s, %s", quote(writers[0]), own[0])
	}
	return limit, fmt.Sprintf("the memory limits of the containers that write to it, %s = %s", strings.Join(own, " + "), limit.String())
}

// memoryLimit warns of a container that can use all memory of the host. Most files have no limits, so it is for strict checks only.
func (l *linter) memoryLimit(c *Container) {
	own, pod := c.Resources.Limits[ResourceMemory], l.pod.Resources.Limits[ResourceMemory]
	if !l.o.Strict || own.Sign() > 0 || pod.Sign() > 0 {
		return
	}
	l.advise(CodeNoMemoryLimit, "set resources.limits.memory", "has no memory limit: it can use all memory of the host", c)
}
