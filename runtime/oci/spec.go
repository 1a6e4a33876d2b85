package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// version is the version of the runtime specification that a container is written in. Nothing of a later one is used,
// and crun refuses versions that it does not know.
const version = "1.0.2"

// ErrNoCommand is the error of a container that says no program, of an image that says none either.
var ErrNoCommand = errors.New("no command specified")

// File is a path of the machine that is shown to containers of the pod.
type File struct{ Path, Source string }

// Input is what the specification of a container is made of.
type Input struct {
	ID        string
	Pod       *spec.Pod
	Container *spec.Container
	Image     imagespec.ImageConfig
	// Hostname is that of the UTS namespace that the container runs in.
	Hostname string
	Namespaces
	// Variables are those that the container's definition sets.
	Variables Variables
	// Mounts are those of the container's volumes.
	Mounts []specs.Mount
	// Propagation is that of the container's root, "" for private, where a mount needs another one.
	Propagation string
	// Files are shown unless the container mounts a volume at their path.
	Files []File
	// Seccomp is the profile that [LocalhostSeccomp] names, and Devices are the machine's, which only privileged containers get.
	Seccomp Profile
	Devices []specs.LinuxDevice
	// CgroupsPath is in the form that the runtime's cgroup driver wants.
	CgroupsPath string
	Cgroup      PodCgroup
	Host        Host
}

// Spec returns the specification of a container, but for the user, which only the image's own files can tell.
func Spec(ctx context.Context, in Input) (*specs.Spec, error) {
	s, err := oci.GenerateSpec(ctx, nil, &containers.Container{ID: in.ID})
	if err != nil {
		return nil, fmt.Errorf("make the default specification: %w", err)
	}
	s.Version = version
	s.Mounts = mounts(&in, s.Mounts)
	s.Linux.RootfsPropagation = in.Propagation
	p := s.Process
	if p.Args, p.Env = Process(&in); len(p.Args) == 0 {
		return nil, ErrNoCommand
	}
	switch {
	case in.Container.WorkingDir != "":
		p.Cwd = in.Container.WorkingDir
	case in.Image.WorkingDir != "":
		p.Cwd = in.Image.WorkingDir
	}
	files := in.Host.openFiles()
	p.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: files, Soft: files}}
	score := in.Host.oomScore(oomScoreOf(in.Pod, in.Container, in.Host.Memory))
	p.OOMScoreAdj = &score
	limit(s.Linux.Resources, &in)
	s.Linux.CgroupsPath = in.CgroupsPath
	s.Linux.Namespaces = namespacesOf(&in)
	in.users(s.Linux)
	if err := secure(s, &in); err != nil {
		return nil, err
	}
	return s, nil
}

// Process returns the arguments and the environment of a container, which are all of it that depends on its variables.
func Process(in *Input) (args, env []string) {
	return arguments(in.Container, in.Variables, in.Image.Entrypoint, in.Image.Cmd), environment(in.Hostname, in.Image.Env, in.Variables)
}
