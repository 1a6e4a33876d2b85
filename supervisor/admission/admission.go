// Package admission decides whether a pod may run on this host. It checks a level of the Pod Security Standards, the
// directories that hostPath volumes may use, and sysctls.
//
// [Policy] is the value of the [policy] table of podstead.toml.
//
// The checks are pure functions of the pod's definition, so the same definition always has the same result. Checks that
// need the host, such as the target of a symbolic link, are made where the object is used (package volume). Admission
// applies to new pods only: a running pod is not affected by a change of the policy.
package admission

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Level is a level of the Pod Security Standards. The empty level means [Privileged].
type Level string

// The levels. Each includes the checks of the previous one.
const (
	Privileged Level = "privileged" // no checks
	Baseline   Level = "baseline"   // prevents known privilege escalations
	Restricted Level = "restricted" // current best practices for hardening pods
)

// Levels returns the names of all levels, the least restrictive first.
func Levels() []string { return []string{string(Privileged), string(Baseline), string(Restricted)} }

// Policy is the admission policy of a host. The zero value checks no level, allows hostPath volumes everywhere, and allows
// only safe sysctls.
type Policy struct {
	PodSecurity Level `json:"podSecurity,omitempty"`
	// HostPaths are the absolute paths of the directories that hostPath volumes may use, including what is below them.
	// Nil: all directories; empty: none.
	HostPaths []string `json:"hostPaths"`
	// Devices are the absolute paths of the device nodes and directories that devices of containers may name, including what is below
	// them. Nil: all; empty: none.
	Devices []string `json:"devices"`
	// Protected are the absolute paths of the daemon's directories and of its socket. Only privileged containers can mount a
	// hostPath volume that contains one or is below one, at every level.
	Protected []string `json:"-"`
	// Rootless is true for a daemon without root, which rejects privileged containers: hints do not name them.
	Rootless bool `json:"-"`
	// UnsafeSysctls are the names of unsafe sysctls that pods may set, or patterns that end in "*" (the kubelet's
	// --allowed-unsafe-sysctls).
	UnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
	// IgnoreRequests admits pods whose requests exceed what the host has free.
	IgnoreRequests bool `json:"ignoreRequests,omitempty"`
	// SystemReserved are the resources that pods cannot request (the kubelet's --system-reserved). They are subtracted by the runtime.
	SystemReserved spec.ResourceList `json:"systemReserved,omitempty"`
}

// Check returns all violations of the policy by a pod, in the order of the standards' controls. If there are none, the pod
// is admitted.
func (p Policy) Check(pod *spec.Pod) []lifecycle.Refusal {
	r := &review{pod: pod}
	r.podSecurity(p.PodSecurity)
	r.hostPaths(p.HostPaths)
	r.devices(p.Devices)
	r.protected(p.Protected, p.Rootless)
	r.sysctls(p.UnsafeSysctls)
	return r.refusals
}

// CheckEphemeral is [Policy.Check] for a container that is added to a running pod. Violations by the pod itself are
// ignored: it was admitted under an earlier policy.
func (p Policy) CheckEphemeral(pod *spec.Pod, c *spec.Container) []lifecycle.Refusal {
	whole := *pod
	whole.EphemeralContainers = []spec.Container{withPodDefaults(pod, *c)}
	return slices.DeleteFunc(p.Check(&whole), func(r lifecycle.Refusal) bool { return !strings.HasPrefix(r.Field, ephemeral) })
}

// withPodDefaults copies the security settings that a container inherits from its pod into the container, so that they are
// checked as its own.
func withPodDefaults(pod *spec.Pod, c spec.Container) spec.Container {
	if pod.SecurityContext == nil {
		return c
	}
	own := *cmp.Or(c.SecurityContext, &spec.SecurityContext{})
	own.RunAsUser = cmp.Or(own.RunAsUser, pod.SecurityContext.RunAsUser)
	own.RunAsNonRoot = cmp.Or(own.RunAsNonRoot, pod.SecurityContext.RunAsNonRoot)
	own.SeccompProfile = cmp.Or(own.SeccompProfile, pod.SecurityContext.SeccompProfile)
	own.AppArmorProfile = cmp.Or(own.AppArmorProfile, pod.SecurityContext.AppArmorProfile)
	c.SecurityContext = &own
	return c
}

const ephemeral = "ephemeralContainers["

// review collects the violations by one pod.
type review struct {
	pod      *spec.Pod
	refusals []lifecycle.Refusal
	requests []string // the violations of the level in a few words
}

func (r *review) hostPaths(allowed []string) {
	if allowed == nil {
		return
	}
	for i := range r.pod.Volumes {
		v := r.pod.Volumes[i].HostPath
		if v == nil || slices.ContainsFunc(allowed, func(dir string) bool { return below(v.Path, dir) }) {
			continue
		}
		requirement := "hostPath volumes are forbidden on this host"
		if len(allowed) > 0 {
			requirement = "must be in a directory that is allowed on this host: " + strings.Join(allowed, ", ")
		}
		r.refusals = append(r.refusals, lifecycle.Refusal{
			Reason: lifecycle.ReasonHostPathForbidden, Field: fmt.Sprintf("volumes[%d].hostPath.path", i),
			Message: fmt.Sprintf("%q: %s", v.Path, requirement),
			Hint:    "use a persistentVolumeClaim, or add the directory to hostPaths in [policy] of podstead.toml and restart the daemon",
		})
	}
}

// devices checks the paths of devices as they are written. Directories of device nodes belong to root, and so do the links in them.
func (r *review) devices(allowed []string) {
	if allowed == nil {
		return
	}
	r.containers(func(at string, c *spec.Container, _ *spec.SecurityContext) {
		for i := range c.Devices {
			d := &c.Devices[i]
			if slices.ContainsFunc(allowed, func(entry string) bool { return allowsDevice(entry, d) }) {
				continue
			}
			field, hint := "path", "add the path to devices in [policy] of podstead.toml and restart the daemon"
			if d.CDI != "" {
				field, hint = "cdi", "add the part before = to devices in [policy] of podstead.toml and restart the daemon"
			}
			requirement := "devices are forbidden on this host"
			if len(allowed) > 0 {
				requirement = "must be, or be in, one that is allowed on this host: " + strings.Join(allowed, ", ")
			}
			r.refusals = append(r.refusals, lifecycle.Refusal{
				Reason: lifecycle.ReasonDeviceForbidden, Field: fmt.Sprintf("%sdevices[%d].%s", at, i, field),
				Message: fmt.Sprintf("%q: %s", d.Name(), requirement),
				Hint:    hint,
			})
		}
	})
}

// allowsDevice reports whether an entry of [Policy.Devices] allows a device. Specifications of CDI devices belong to root, but can run
// programs and mount any file: a path allows none.
func allowsDevice(entry string, d *spec.Device) bool {
	if d.CDI == "" {
		return path.IsAbs(entry) && below(d.Path, entry)
	}
	kind, _, _ := strings.Cut(d.CDI, "=")
	return entry == kind || entry == d.CDI
}

// below reports whether the absolute path name is dir or below it. It compares the text and does not follow links.
func below(name, dir string) bool {
	name, dir = path.Clean(name), path.Clean(dir)
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}

func (r *review) sysctls(allowed []string) {
	unsafe := r.pod.UnsafeSysctls()
	for i := range unsafe {
		name := unsafe[i]
		if matchSysctl(allowed, name) {
			continue
		}
		refusal := lifecycle.Refusal{
			Reason: lifecycle.ReasonSysctlForbidden, Field: r.sysctlField(name),
			Message: fmt.Sprintf("forbidden sysctl: %q not allowlisted", name), // the kubelet's message
			Hint:    fmt.Sprintf("add %q to allowedUnsafeSysctls in [policy] of podstead.toml and restart the daemon", name),
		}
		if spec.SysctlNamespace(name) == "" {
			refusal.Message = fmt.Sprintf("forbidden sysctl: %q is not namespaced, it applies to the whole host", name)
			refusal.Hint = fmt.Sprintf("remove it from the pod and set it on the host: sysctl -w %s=...", name)
		}
		r.refusals = append(r.refusals, refusal)
	}
}

// sysctlField returns the field path of a sysctl. The name has the form of [spec.SysctlName].
func (r *review) sysctlField(name string) string {
	list := r.pod.SecurityContext.Sysctls
	i := slices.IndexFunc(list, func(s spec.Sysctl) bool { return spec.SysctlName(s.Name) == name })
	return fmt.Sprintf("securityContext.sysctls[%d].name", i)
}

// matchSysctl reports whether one of the patterns, as in [Policy.UnsafeSysctls], allows a namespaced sysctl.
func matchSysctl(patterns []string, name string) bool {
	return spec.SysctlNamespace(name) != "" && slices.ContainsFunc(patterns, func(pattern string) bool {
		if prefix, wildcard := strings.CutSuffix(pattern, "*"); wildcard {
			return strings.HasPrefix(name, spec.SysctlName(prefix))
		}
		return spec.SysctlName(pattern) == name
	})
}

// CheckSysctlPattern validates a pattern of [Policy.UnsafeSysctls]. As in the kubelet, it must match namespaced sysctls only.
func CheckSysctlPattern(pattern string) error {
	prefix, _ := strings.CutSuffix(pattern, "*")
	if prefix == "" || strings.Contains(prefix, "*") || spec.SysctlNamespace(prefix) == "" {
		return fmt.Errorf("%q is not a namespaced sysctl: must match net.*, kernel.shm*, kernel.msg*, kernel.sem or fs.mqueue.*", pattern)
	}
	return nil
}
