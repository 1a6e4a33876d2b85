package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// version is the version of the runtime specification. crun rejects versions that are newer than itself, and no newer feature is
// used.
const version = "1.0.2"

// ErrNoCommand is returned if neither the container nor its image sets a command.
var ErrNoCommand = errors.New("no command specified")

// File is a file of the host that is mounted into the pod's containers.
type File struct {
	Path, Source string
	// WithRoot makes the file read-only in a container with a read-only root file system.
	WithRoot bool
	// Program makes the file read-only, and not a program with the rights of its owner.
	Program bool
}

// Input is the input for the specification of a container.
type Input struct {
	ID        string
	Pod       *spec.Pod
	Container *spec.Container
	Image     imagespec.ImageConfig
	// Hostname is the host name in the container's UTS namespace.
	Hostname string
	Namespaces
	// Variables are those of the container's definition.
	Variables Variables
	// Mounts are those of the container's volumes.
	Mounts []specs.Mount
	// Propagation is the mount propagation of the container's root, if a mount requires another one than private.
	Propagation string
	// Files are mounted unless the container mounts a volume at their path.
	Files []File
	// Seccomp is the profile named by [LocalhostSeccomp]. Devices are the host's devices for privileged containers.
	Seccomp Profile
	Devices []specs.LinuxDevice
	// Granted are the devices that the container names.
	Granted []Device
	// DeviceMounts and DeviceEnv are what specifications of devices add. Each variable is NAME=VALUE and replaces one with its name.
	DeviceMounts []specs.Mount
	DeviceEnv    []string
	// Only64 is true if the image has no 32-bit programs. The default seccomp profile then has no other architecture than the host's,
	// unless volumes can contain such programs.
	Only64 bool
	// CgroupsPath is in the form that the OCI runtime's cgroup driver requires.
	CgroupsPath string
	Cgroup      PodCgroup
	Host        Host
}

// Spec returns the specification of a container without the user, which depends on files in the image.
func Spec(ctx context.Context, in Input) (*specs.Spec, error) {
	s, err := oci.GenerateSpec(ctx, nil, &containers.Container{ID: in.ID})
	if err != nil {
		return nil, fmt.Errorf("generate default specification: %w", err)
	}
	s.Version = version
	s.Mounts = mounts(&in, s.Mounts)
	s.Linux.RootfsPropagation = in.Propagation
	p := s.Process
	if p.Args, p.Env = Process(&in); len(p.Args) == 0 {
		return nil, ErrNoCommand
	}
	p.Terminal = in.Container.TTY
	p.Cwd = cmp.Or(in.Container.WorkingDir, in.Image.WorkingDir, p.Cwd)
	p.Rlimits = in.Host.rlimits(in.Container)
	score := in.Host.oomScore(oomScoreOf(in.Pod, in.Container, in.Host.Memory))
	p.OOMScoreAdj = &score
	limit(s.Linux.Resources, &in)
	s.Linux.CgroupsPath, s.Annotations = in.CgroupsPath, inScope(in.CgroupsPath)
	s.Linux.Namespaces = namespacesOf(&in)
	in.users(s.Linux)
	if err := secure(s, &in); err != nil {
		return nil, err
	}
	addDevices(s, &in)
	return s, addDeviceMounts(s, &in)
}

// Process returns the arguments and the environment of a container, the parts that depend on its variables.
func Process(in *Input) (args, env []string) {
	image := in.Image.Env
	if in.Container.TTY {
		image = append([]string{"TERM=xterm"}, image...) // as the CRI plugin of containerd does
	}
	args = arguments(in.Variables, in.Image.Entrypoint, in.Image.Cmd)
	if in.Container.Init && len(args) > 0 {
		args = append([]string{spec.InitPath}, args...)
	}
	return args, environment(in.Hostname, image, in.Variables, in.DeviceEnv)
}
