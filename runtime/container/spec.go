package container

import (
	"context"
	"errors"
	"fmt"
	"path"

	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// spec returns the OCI specification of a container, and prepares its files and mounts. The caller calls discard after an error.
func (s *Service) spec(ctx context.Context, n *creation) (*specs.Spec, error) {
	in, err := s.input(ctx, n)
	if err != nil {
		return nil, err
	}
	result, err := s.configure(ctx, n, in)
	if err == nil {
		err = s.config.AppArmor.Ensure(ctx, result.Process.ApparmorProfile)
	}
	if errors.Is(err, oci.ErrNoCommand) {
		return nil, err
	}
	if err == nil {
		if err := s.config.Users.PlaceRoot(result, n.id, n.ids); err != nil {
			return nil, err
		}
	}
	return result, engine.Refused(ctx, lifecycle.ReasonCreateConfigError, err)
}

// input returns the input of [oci.Spec] that does not depend on the configuration of the pod, and writes its files.
func (s *Service) input(ctx context.Context, n *creation) (oci.Input, error) {
	if err := s.config.Etc.WriteHosts(ctx, n.uid, n.pod, n.action.Sandbox); err != nil {
		return oci.Input{}, err
	}
	hostname, err := sandbox.Hostname(n.pod)
	if err != nil {
		return oci.Input{}, err
	}
	pins := namespace.Paths(s.config.Dirs.Sandbox(n.uid, n.action.Sandbox), sandbox.Namespaces(n.pod, n.ids))
	in := oci.Input{
		ID: n.id, Pod: n.pod, Container: n.container, Image: n.config,
		Hostname: hostname, Namespaces: sandbox.Joined(pins, n.ids),
		Files:       s.config.Etc.Mounts(n.uid, n.action.Sandbox, pins),
		CgroupsPath: s.config.Cgroups.OCIPath(n.uid, n.id),
		Host:        s.config.Host,
	}
	if s.config.Cgroups.Without(n.uid) {
		in.Host = in.Host.WithoutCgroups()
	}
	if n.container.Init {
		if err := sandbox.CheckStatic(s.config.Engine.MonitorPath()); err != nil {
			return oci.Input{}, fmt.Errorf("init process: %w", err)
		}
		in.Files = append(in.Files, oci.File{Path: spec.InitPath, Source: s.config.Engine.MonitorPath(), Program: true})
	}
	if n.container.TargetContainerName != "" {
		target, err := s.target(ctx, n.uid, n.container.TargetContainerName)
		if err != nil {
			return oci.Input{}, err
		}
		in.PID = namespacePath(target.pid) // checked before the process starts
	}
	if in.Cgroup.Swap, in.Cgroup.OOMGroup, err = s.config.Cgroups.Features(n.uid); err != nil {
		return oci.Input{}, err
	}
	if in.Only64, err = s.config.Images.Only64(ctx, n.image); err != nil {
		return oci.Input{}, err
	}
	if n.container.TerminationMessagePath != "" {
		message := s.config.Dirs.Message(n.uid, n.container.Name, n.id)
		if err := errors.Join(exit.CreateMessage(message), sandbox.Chown(n.ids, message)); err != nil {
			return oci.Input{}, err
		}
		in.Files = append(in.Files, oci.File{Path: path.Join("/", n.container.TerminationMessagePath), Source: message})
	}
	return in, nil
}

// configure completes the input with what the configuration of the pod refers to: profiles, devices, variables, volumes and secrets. All
// its errors are errors of the container's configuration.
func (s *Service) configure(ctx context.Context, n *creation, in oci.Input) (*specs.Spec, error) {
	uid := n.uid
	if err := s.completeSecurity(&in); err != nil {
		return nil, err
	}
	var err error
	if n.devices, err = grantedDevices(ctx, in.Container); err != nil {
		return nil, err
	}
	for _, nodes := range n.devices {
		for i := range nodes {
			in.Granted = append(in.Granted, nodes[i].Device)
		}
	}
	if err := s.completeCDI(ctx, n, &in); err != nil {
		return nil, err
	}
	d, err := s.config.Volumes.Downward(uid, in.Pod, s.config.Network.IPs(uid))
	if err != nil {
		return nil, err
	}
	n.values = newSecretSnapshot(s.config.Values, s.filesOf(ctx, uid, in.Pod), in.Container)
	values := n.values
	variables, err := oci.Resolve(in.Container, d, values)
	if err != nil {
		return nil, values.Redact(err)
	}
	if err := s.config.Volumes.Refresh(ctx, uid, in.Pod); err != nil {
		return nil, err
	}
	pod, err := s.withImageDefined(ctx, n, &in)
	if err != nil {
		return nil, err
	}
	mounting := pod.Container(in.Container.Name)
	if err := s.config.Volumes.PrepareContainer(ctx, uid, pod, mounting); err != nil {
		return nil, err
	}
	images, err := s.config.ImageVolumes.Mount(ctx, uid, in.Pod, in.Container, in.Namespaces)
	if err != nil {
		return nil, err
	}
	n.volumes = sandbox.VolumePod(d)
	n.volumes.Spec = pod
	n.request = volume.Request{
		Container: mounting, Run: in.ID, Variables: variables.Map(), Images: images,
		RecursiveReadOnly: s.config.RecursiveReadOnly(ctx, n.sandbox.Runtime()),
	}
	if in.IDs.First != 0 {
		n.request.UserNamespace = in.User
	}
	in.Mounts, err = s.config.Volumes.Mounts(ctx, n.volumes, n.request)
	if err != nil {
		return nil, values.Redact(err)
	}
	in.Propagation = volume.RootPropagation(in.Mounts)
	in.Variables = variables
	if !values.HasSecrets() {
		return oci.Spec(ctx, in)
	}
	return s.maskSecrets(ctx, uid, in, d, values)
}

// withImageDefined returns the pod with the volumes that the image of the container defines. What an earlier attempt to create the
// container has left of them is removed.
func (s *Service) withImageDefined(ctx context.Context, n *creation, in *oci.Input) (pod *spec.Pod, err error) {
	if len(n.config.Volumes) == 0 {
		return n.pod, nil
	}
	files := make([]string, len(in.Files))
	for i := range in.Files {
		files[i] = in.Files[i].Path
	}
	if n.imageDefined, err = volume.ImageDefined(n.config.Volumes, n.container, files); err != nil {
		return nil, err
	}
	if err := s.config.Volumes.RemoveImageDefined(ctx, n.uid, n.id); err != nil {
		return nil, err
	}
	return volume.WithImageDefined(n.pod, n.container.Name, n.id, n.imageDefined), nil
}

// maskSecrets returns a specification without the values of secrets, for the engine's database, and writes the real arguments and variables
// to a file for the shim.
func (s *Service) maskSecrets(
	ctx context.Context, uid string, in oci.Input, d *oci.Downward, values *secretSnapshot,
) (*specs.Spec, error) {
	var p ocibundle.Process
	p.Args, p.Env = oci.Process(&in)
	var err error
	if in.Variables, err = oci.Resolve(in.Container, d, values.Masked()); err != nil {
		return nil, values.Redact(err)
	}
	result, err := oci.Spec(ctx, in)
	if err != nil {
		return nil, err
	}
	result.Annotations, err = s.processes.Write(uid, in.ID, p)
	return result, err
}

// completeSecurity adds what a container's security context refers to: its seccomp profile, and the devices of the host.
func (s *Service) completeSecurity(in *oci.Input) error {
	var err error
	if name := oci.LocalhostSeccomp(in.Pod, in.Container); name != "" {
		if in.Seccomp, err = seccompProfile(s.config.ConfigDir, name); err != nil {
			return err
		}
	}
	if !oci.Privileged(in.Container) {
		return nil
	}
	if in.Devices, err = containerdoci.HostDevices(); err != nil {
		return fmt.Errorf("list devices of the host: %w", err)
	}
	return nil
}
