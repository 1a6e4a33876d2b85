package runtime

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/spec"
)

// namespacesOf says which namespaces a pod has of its own, with the ids of its users if it has any of its own. In the machine's
// network it has the machine's name too.
func namespacesOf(pod *spec.Pod, ids idmap.Range) netns.Options {
	o := netns.Options{HostIPC: pod.HostIPC, PID: pod.ShareProcessNamespace, IDs: ids}
	if pod.SecurityContext != nil {
		o.Sysctls = pod.SecurityContext.Sysctls
	}
	if !pod.HostNetwork {
		o.Network, o.Hostname = true, oci.Hostname(pod)
	}
	return o
}

// joined are the namespaces of a sandbox that its processes join.
func joined(pins netns.Pins, ids idmap.Range) oci.Namespaces {
	return oci.Namespaces{Network: pins.Network, IPC: pins.IPC, UTS: pins.UTS, PID: pins.PID, User: pins.User, IDs: ids}
}

// sandboxSpec is the specification of the process that a sandbox needs, or nil where it needs none: only a PID namespace that
// containers share does.
func (r *Runtime) sandboxSpec(uid string, sandbox int, pod *spec.Pod, n oci.Namespaces) *specs.Spec {
	if !pod.ShareProcessNamespace {
		return nil
	}
	s := oci.Pause(oci.PauseInput{
		Program:     r.engine.ShimPath(),
		Namespaces:  n,
		CgroupsPath: r.cgroups.OCIPath(uid, record.SandboxID(uid, sandbox)),
		Host:        r.machine,
	})
	s.Annotations = map[string]string{shim.PIDAnnotation: n.PID}
	return s
}
