package sandbox

import (
	"debug/elf"
	"fmt"
	"maps"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

// Namespaces returns the namespaces of a pod. The IDs are those of its user namespace, or zero. A pod with hostNetwork also has the host
// name of the host.
func Namespaces(pod *spec.Pod, ids namespace.IDRange) namespace.Options {
	o := namespace.Options{HostIPC: pod.HostIPC, PID: pod.ShareProcessNamespace, IDs: ids}
	if pod.SecurityContext != nil {
		o.Sysctls = pod.SecurityContext.Sysctls
	}
	if pod.ShmSize != nil {
		o.ShmBytes = pod.ShmSize.Value()
	}
	if !pod.HostNetwork {
		o.Network, o.Hostname = true, oci.Hostname(pod)
	}
	return o
}

// Joined returns the namespaces of a sandbox that its containers join.
func Joined(pins namespace.Pins, ids namespace.IDRange) oci.Namespaces {
	return oci.Namespaces{Network: pins.Network, IPC: pins.IPC, UTS: pins.UTS, PID: pins.PID, User: pins.User, IDs: ids}
}

// processSpec returns the specification of the sandbox's process. It is nil unless containers share a PID namespace.
func (s *Service) processSpec(uid string, sandbox int, pod *spec.Pod, n oci.Namespaces) (*specs.Spec, error) {
	if !pod.ShareProcessNamespace {
		return nil, nil
	}
	if err := CheckStatic(s.config.Engine.MonitorPath()); err != nil {
		return nil, fmt.Errorf("process of sandbox: %w", err)
	}
	id := record.SandboxID(uid, sandbox)
	process := oci.Pause(oci.PauseInput{
		Program:     s.config.Engine.MonitorPath(),
		Namespaces:  n,
		CgroupsPath: s.config.Cgroups.OCIPath(uid, id),
		Host:        s.config.Host,
	})
	annotations := map[string]string{ocibundle.PIDAnnotation: n.PID}
	maps.Copy(annotations, process.Annotations)
	process.Annotations = annotations
	return process, s.config.Users.PlaceRoot(process, id, n.IDs)
}

// CheckStatic returns an error if a program cannot be the sandbox's process or the init process of a container: their root file systems
// have no dynamic linker and no libraries for it. The OCI runtime reports such a process as started, since it is executed later.
func CheckStatic(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is dynamically linked: build podstead with CGO_ENABLED=0 for shareProcessNamespace and init", program)
	}
	return nil
}
