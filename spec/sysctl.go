package spec

import (
	"slices"
	"strings"
)

// safeSysctls are the sysctls that any pod can set: they are namespaced and cannot affect other pods. The list is that of the
// Pod Security Standards and of the kubelet (sysctl.SafeSysctlAllowlist). Unlike the kubelet, Podstead does not check the
// kernel version: if the kernel does not have a sysctl, the creation of the sandbox fails.
var safeSysctls = []string{
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_wmem",
}

// SysctlName returns the name of a sysctl with dots as separators. A part can contain a slash, as in
// "net.ipv4.conf.eno2/100.rp_filter". If the first separator of the argument is a slash, dots and slashes are swapped
// (sysctl.d(5); Kubernetes: NormalizeName).
func SysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return swapSeparators(name)
}

// SysctlPath returns the path of a sysctl below /proc/sys.
func SysctlPath(name string) string { return swapSeparators(SysctlName(name)) }

func swapSeparators(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
}

// SysctlNamespace returns the kind of namespace of a sysctl: "net", "ipc", or "" if it is not namespaced. A pod cannot set the
// latter.
func SysctlNamespace(name string) string {
	name = SysctlName(name)
	switch {
	case strings.HasPrefix(name, "net."):
		return "net"
	case strings.HasPrefix(name, "kernel.shm"), strings.HasPrefix(name, "kernel.msg"), name == "kernel.sem",
		strings.HasPrefix(name, "fs.mqueue."):
		return "ipc"
	}
	return ""
}

// UnsafeSysctls returns the sysctls of the pod that are not on the safe list, in the form of [SysctlName] and in the order of
// the file. Admission rejects the pod unless the configuration allows them.
func (p *Pod) UnsafeSysctls() []string {
	if p.SecurityContext == nil {
		return nil
	}
	var names []string
	for i := range p.SecurityContext.Sysctls {
		if name := SysctlName(p.SecurityContext.Sysctls[i].Name); !slices.Contains(safeSysctls, name) {
			names = append(names, name)
		}
	}
	return names
}
