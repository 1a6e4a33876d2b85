package oci

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/applet"
)

const (
	// pauseUser is the user and group nobody, as in Kubernetes' pause image.
	pauseUser = 65535
	// oomScorePause is the kubelet's value for the pause container, so that the kernel kills containers first.
	oomScorePause = -998
)

// PauseInput is the input for the specification of a pod's pause process.
type PauseInput struct {
	// Program is an executable file that is the pause process of package applet when started as "pause".
	Program string
	Namespaces
	// CgroupsPath is in the form that the OCI runtime's cgroup driver requires.
	CgroupsPath string
	Host        Host
}

// Pause returns the specification of a process that creates the PID namespace for the containers of a pod. The containers can see
// the process, so it has nothing that they could use: an empty root file system, to be mounted on "rootfs", with its read-only
// program; the pod's namespaces; no capabilities, no privileges of the host's root user, no inherited environment.
func Pause(in PauseInput) *specs.Spec {
	in.PID = "" // it begins a new one
	score := in.Host.oomScore(oomScorePause)
	s := &specs.Spec{
		Version: version, Annotations: inScope(in.CgroupsPath),
		Root: &specs.Root{Path: "rootfs", Readonly: true},
		Process: &specs.Process{
			Args: []string{"/" + applet.PauseName}, Cwd: "/",
			Env:             []string{"GOMAXPROCS=1"},
			User:            specs.User{UID: pauseUser, GID: pauseUser},
			NoNewPrivileges: true,
			OOMScoreAdj:     &score,
			Capabilities:    &specs.LinuxCapabilities{},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "size=64k", "mode=755"}},
			{
				Destination: "/" + applet.PauseName, Type: "bind", Source: in.Program,
				Options: []string{"bind", "rprivate", "ro", "nosuid", "nodev"},
			},
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
		s.Linux.Seccomp = nativeSeccomp(s)
	}
	return s
}

// Trial returns the specification of a container that exits at once, to find out whether an OCI runtime works on this host. Its root file
// system is the directory "rootfs".
func Trial(in PauseInput) *specs.Spec {
	s := Pause(in)
	s.Process.Args = append(s.Process.Args, applet.PauseTrial)
	s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.IPCNamespace},
		specs.LinuxNamespace{Type: specs.UTSNamespace})
	return s
}
