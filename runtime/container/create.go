package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// creation is a container that is being created.
type creation struct {
	uid          string
	pod          *spec.Pod
	container    *spec.Container
	action       lifecycle.StartContainer
	id           string
	sandbox      *engine.Sandbox
	image        image.Image
	config       ocispec.ImageConfig
	architecture string
	ids          namespace.IDRange
	user         oci.User
	volumes      volume.Pod
	request      volume.Request // of the volumes that the container mounts
	imageDefined []string       // the paths of volumes that its image defines
	devices      [][]node       // by device of the container
	edits        *cdispecs.ContainerEdits
	values       *secretSnapshot
	spec         *specs.Spec
}

// create creates the record of a container and its writable layer, after every older run of the container has exited.
func (s *Service) create(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer) (client.Container, error) {
	if err := s.terminateOlder(ctx, uid, a.Container); err != nil {
		// The old run is unchanged. This is not a failed attempt, and it is retried soon.
		return nil, engine.Failure(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("terminate the previous run: %w", err))
	}
	n, err := s.prepare(ctx, uid, pod, a)
	if err != nil {
		return nil, err
	}
	// The containers may have other limits than when the sandbox was started. Lower ones may be below what other containers use still.
	if err := s.limitPod(ctx, uid, s.config.Host.PodLimits(pod, s.config.PidsLimit), s.config.Cgroups.Raise); err != nil {
		return nil, err
	}
	if n.spec, err = s.spec(ctx, n); err != nil {
		return nil, errors.Join(err, s.discard(ctx, uid, a.Ref))
	}
	created, err := s.createRecord(ctx, n)
	if err == nil {
		return created, nil
	}
	// A snapshot without a record was left by this failure or by a daemon that was killed.
	undone := s.removeSnapshot(ctx, n.id)
	if errdefs.IsAlreadyExists(err) && undone == nil {
		if created, err = s.createRecord(ctx, n); err == nil {
			return created, nil
		}
		undone = s.removeSnapshot(ctx, n.id)
	}
	return nil, errors.Join(err, undone, s.discard(ctx, uid, a.Ref))
}

// prepare finds what a container is created from. It changes nothing.
func (s *Service) prepare(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer) (*creation, error) {
	c, err := Find(pod, a.Container)
	if err != nil {
		return nil, err
	}
	if s.config.Cgroups.Without(uid) {
		if refused := s.config.Host.CheckWithoutCgroups(pod); len(refused) > 0 { // the pod was started before, or with others
			return nil, engine.Refused(ctx, lifecycle.ReasonCreateConfigError, refused[0])
		}
	}
	sandbox, err := s.config.Engine.LoadSandbox(ctx, record.SandboxID(uid, a.Sandbox))
	if err != nil {
		return nil, err
	}
	scope := s.config.Images.In(pod.ArchivesOf(c)...)
	img, err := scope.EnsureAgain(ctx, c.Image, spec.PullNever, image.Previous{ConfigDigest: a.ImageID}, nil)
	if err == nil && a.ImageID != "" && img.ConfigDigest != a.ImageID {
		err = fmt.Errorf("image %q: %s was removed", c.Image, a.ImageID) // since the pull; the next attempt pulls again
	}
	if err != nil {
		return nil, err
	}
	config, err := s.config.Images.Config(ctx, img)
	if err != nil {
		return nil, err
	}
	ids, err := s.config.Users.Find(uid, pod)
	if err != nil {
		return nil, err
	}
	if err := checkStopSignal(c.Image, config.Config.StopSignal); err != nil {
		return nil, err
	}
	user, err := oci.UserOf(pod, c, uid, config.Config.User)
	if err != nil {
		return nil, engine.Refused(ctx, lifecycle.ReasonCreateConfigError, err)
	}
	return &creation{
		uid: uid, pod: pod, container: c, action: a, id: record.ContainerID(uid, a.Ref),
		sandbox: sandbox, image: img, config: config.Config, architecture: config.Architecture, ids: ids, user: user,
	}, nil
}

// createRecord creates the record and the writable layer.
func (s *Service) createRecord(ctx context.Context, n *creation) (client.Container, error) {
	labels := record.Labels(n.uid, n.pod, n.action, n.container)
	labels[record.LabelMessage] = exit.MessageLabel(n.container)
	labels[record.LabelBoot] = s.config.BootID
	labels[record.LabelImageID] = n.image.ConfigDigest
	labels[record.LabelImageArch] = n.architecture
	maps.Copy(labels, image.KeepLabels(n.image))
	labels[record.LabelStopSignal] = n.config.StopSignal
	if slices.Contains(n.spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.PIDNamespace}) {
		labels[record.LabelPrompt] = n.sandbox.Label(record.LabelPrompt)
	}
	labels[record.LabelStdin] = string(stdinOf(n.container))
	if n.container.TTY {
		labels[record.LabelTerminal] = "true"
	}
	log, err := s.logPath(n)
	if err != nil {
		return nil, err
	}
	labels[record.LabelLog] = log
	maps.DeleteFunc(labels, func(_, v string) bool { return v == "" })
	options := []client.NewContainerOpts{
		client.WithSnapshotter(s.config.Snapshotter),
		client.WithNewSnapshot(n.id, s.config.Images.Handle(n.image), sandbox.SnapshotOpts(n.ids)...),
		client.WithSpec(n.spec, s.withRoot(n)),
		client.WithContainerLabels(labels),
		record.WithDefinition(n.pod),
		record.WithImageDefined(n.imageDefined),
	}
	if len(n.devices) > 0 {
		options = append(options, record.WithDevices(deviceState{Known: n.devices, Held: n.devices}))
	}
	if n.ids.Own() {
		options = append(options, n.sandbox.WithUserNamespace())
	}
	return n.sandbox.NewContainer(ctx, n.id, options...)
}

// terminateOlder kills every run of a container that has not exited.
func (s *Service) terminateOlder(ctx context.Context, uid, container string) error {
	list, err := record.Containers(ctx, s.config.Client, uid)
	if err != nil {
		return err
	}
	for _, c := range list {
		info := record.Info(ctx, c)
		if info.Labels[record.LabelContainer] != container || info.Labels[record.LabelExit] != "" {
			continue
		}
		if err := s.config.Exits.Terminate(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// discard removes what was prepared for a container that could not be created.
func (s *Service) discard(ctx context.Context, uid string, ref lifecycle.Ref) error {
	ctx, cancel := engine.Detached(ctx, engine.UndoTimeout)
	defer cancel()
	return s.release(ctx, uid, record.ContainerID(uid, ref), ref.Container)
}

func (s *Service) removeSnapshot(ctx context.Context, id string) error {
	ctx, cancel := engine.Detached(ctx, engine.UndoTimeout)
	defer cancel()
	if err := s.snapshotter().Remove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove writable layer: %w", err)
	}
	return nil
}
