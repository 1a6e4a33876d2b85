package spec

import (
	"slices"
	"strings"
)

// safeSysctls are the kernel parameters that any pod may set: each belongs to one of the pod's own namespaces, and none
// lets a pod harm another, or use more than it is given. They are Kubernetes' (its pod security standards and the kubelet's
// list), without its look at the kernel's version: where the kernel has not got one, the sandbox says so.
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

// SysctlName is the name of a kernel parameter with dots between its parts, of which a part may hold a slash, as in
// "net.ipv4.conf.eno2/100.rp_filter". The first separator tells how a name is written: after a slash, dots and slashes
// change places; else it stays as it is (sysctl.d(5), and the kubelet).
func SysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return swapSeparators(name)
}

// SysctlPath is the path of a kernel parameter below /proc/sys.
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

// SysctlNamespace is the kind of namespace that a kernel parameter, in either spelling, belongs to: "net", "ipc", or "" for
// one of the machine as a whole, which no pod can have a value of its own of.
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

// UnsafeSysctls are the names (in the form of [SysctlName], in the order of the file) of
// the kernel parameters that the pod sets and that are not on the safe list: it may run only where they are allowed.
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
