package oci

import (
	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/pause"
)

const (
	// pauseUser is nobody: the user and the group of Kubernetes' own pause.
	pauseUser = 65535
	// oomScorePause is the kubelet's for it: the containers go first.
	oomScorePause = -998
)

// PauseInput is what the specification of a pod's pause is made of.
type PauseInput struct {
	// Program is an executable file that is package pause under that package's name.
	Program string
	Namespaces
	// CgroupsPath is in the form that the runtime's cgroup driver wants.
	CgroupsPath string
	Host        Host
}

// Pause returns the specification of a process whose PID namespace, a new one, is for the containers of a pod. Since they see it,
// it has nothing that they could take from it: an empty root, which is to be mounted on "rootfs", of which its program is a
// part that cannot be written to; the pod's namespaces; no capability, no right of the machine's root, no environment but its own.
func Pause(in PauseInput) *specs.Spec {
	in.PID = "" // it begins a new one
	score := in.Host.oomScore(oomScorePause)
	s := &specs.Spec{
		Version: version,
		Root:    &specs.Root{Path: "rootfs", Readonly: true},
		Process: &specs.Process{
			Args: []string{"/" + pause.Name}, Cwd: "/",
			Env:             []string{"GOMAXPROCS=1"},
			User:            specs.User{UID: pauseUser, GID: pauseUser},
			NoNewPrivileges: true,
			OOMScoreAdj:     &score,
			Capabilities:    &specs.LinuxCapabilities{},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "size=64k", "mode=755"}},
			{Destination: "/" + pause.Name, Type: "bind", Source: in.Program, Options: []string{"bind", "rprivate", "ro", "nosuid", "nodev"}},
		},
		Linux: &specs.Linux{
			CgroupsPath: in.CgroupsPath,
			Namespaces: append(in.joined(),
				specs.LinuxNamespace{Type: specs.PIDNamespace}, specs.LinuxNamespace{Type: specs.MountNamespace}),
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
		},
	}
	in.users(s.Linux)
	if in.Host.UnifiedCgroups {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	if in.Host.Seccomp {
		s.Linux.Seccomp = seccomp.DefaultProfile(s)
	}
	return s
}
