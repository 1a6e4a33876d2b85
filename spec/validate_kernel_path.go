package spec

import (
	"path"
	"slices"
	"strings"
)

// procFiles are the files of /proc that a volume may replace, as in runc (validProcMounts): lxcfs provides them.
var procFiles = []string{
	"/proc/cpuinfo", "/proc/diskstats", "/proc/loadavg", "/proc/meminfo", "/proc/slabinfo", "/proc/stat", "/proc/swaps", "/proc/uptime",
}

// runtimeDevices are the entries of /dev that the OCI runtime creates. It relies on them when it hides files of /proc.
var runtimeDevices = []string{
	"/dev/console", "/dev/core", "/dev/fd", "/dev/full", "/dev/mqueue", "/dev/null", "/dev/ptmx", "/dev/pts", "/dev/random",
	"/dev/stderr", "/dev/stdin", "/dev/stdout", "/dev/tty", "/dev/urandom", "/dev/zero",
}

// outsideKernel reports a mount point of a container that would replace a part of /dev, /proc or /sys that the OCI runtime sets up. Content
// of the container's choice there defeats its protection (CVE-2025-31133). Mount points of other devices, and of /dev/shm, are allowed.
func (v *validator) outsideKernel(field *string) {
	const below, is = "Forbidden: must not be at or below %s in a container that is not " +
		"privileged", "Forbidden: %s is set up by the OCI runtime and can be replaced only in a privileged container"
	if *field == "" {
		return
	}
	p := path.Join("/", *field)
	switch {
	case slices.Contains(procFiles, p):
	case atOrBelow(p, "/proc"):
		v.bad(field, below, "/proc")
	case atOrBelow(p, "/sys"):
		v.bad(field, below, "/sys")
	case p == "/dev":
		v.bad(field, is, "/dev")
	case strings.HasPrefix(p, "/dev/shm/"): // the containers of the pod can create links there
		v.bad(field, "Forbidden: must not be below /dev/shm in a container that is not privileged")
	default:
		if i := slices.IndexFunc(runtimeDevices, func(device string) bool { return atOrBelow(p, device) }); i >= 0 {
			v.bad(field, is, runtimeDevices[i])
		}
	}
}

// isOwnHostPath reports whether a mount shows a directory of the kernel's file systems of the host at its own path, such as /sys at /sys.
// Containers cannot create links in these. /proc is not one of them: OCI runtimes do not replace it.
func (v *validator) isOwnHostPath(m *VolumeMount) bool {
	if m.SubPath != "" || m.SubPathExpr != "" {
		return false
	}
	p := path.Join("/", m.MountPath)
	for i := range v.pod.Volumes {
		if h := v.pod.Volumes[i].HostPath; h != nil && v.pod.Volumes[i].Name == m.Name && path.Clean(h.Path) == p {
			return p == "/dev" || atOrBelow(p, "/sys") || slices.Contains(runtimeDevices, p)
		}
	}
	return false
}

// nestedDevices reports mount points below another volume in /dev, whose content decides where they lead.
func (v *validator) nestedDevices(c *Container) {
	if privileged(c) {
		return
	}
	for i := range c.VolumeMounts {
		for j := range c.VolumeMounts {
			inner, outer := path.Join("/", c.VolumeMounts[i].MountPath), path.Join("/", c.VolumeMounts[j].MountPath)
			if i != j && inner != outer && strings.HasPrefix(outer, "/dev/") && outer != "/dev/shm" && atOrBelow(inner, outer) {
				v.bad(&c.VolumeMounts[i].MountPath,
					"Forbidden: must not be below the mount point %s in a container that is not privileged", outer)
			}
		}
	}
}

// atOrBelow reports whether a clean path is a directory or below it.
func atOrBelow(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
