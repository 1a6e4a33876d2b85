package oci

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/namespace"
)

// Namespaces are the paths of the pod's namespaces that its containers join. An empty path means the namespace of the host. For
// PID it means one per container, unless the pod sets hostPID.
type Namespaces struct {
	Network, IPC, UTS, PID string
	// User is the user namespace that owns the others. IDs are its mappings.
	User string
	IDs  namespace.IDRange
}

// users sets the mappings of the user namespace, if there is one. The OCI runtime requires them even to join an existing one.
func (n Namespaces) users(s *specs.Linux) {
	s.UIDMappings, s.GIDMappings = n.IDs.Extents()
}

// namespacesOf lists the namespaces of a container: its own for mounts and, unless the pod shares it, for processes, and the
// pod's for the rest.
func namespacesOf(in *Input) []specs.LinuxNamespace {
	var list []specs.LinuxNamespace
	if in.PID == "" && !in.Pod.HostPID {
		list = append(list, specs.LinuxNamespace{Type: specs.PIDNamespace})
	}
	list = append(list, specs.LinuxNamespace{Type: specs.MountNamespace})
	list = append(list, in.joined()...)
	if in.Host.UnifiedCgroups && !Privileged(in.Container) { // as in containerd's CRI plug-in
		list = append(list, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return list
}

// joined lists the existing namespaces to join.
func (n Namespaces) joined() []specs.LinuxNamespace {
	var list []specs.LinuxNamespace
	for _, ns := range []specs.LinuxNamespace{
		{Type: specs.UserNamespace, Path: n.User},
		{Type: specs.PIDNamespace, Path: n.PID},
		{Type: specs.NetworkNamespace, Path: n.Network},
		{Type: specs.IPCNamespace, Path: n.IPC},
		{Type: specs.UTSNamespace, Path: n.UTS},
	} {
		if ns.Path != "" {
			list = append(list, ns)
		}
	}
	return list
}
