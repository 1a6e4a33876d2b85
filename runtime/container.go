package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/runtime/termination"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// StartContainer creates and starts a run, or finds it. What it could not finish in time it takes away. Once the container is
// being started, it ends when that is done, also if ctx is cancelled before.
//
// Refused, with CreateContainerConfigError, is a container whose volumes are not as their types say, and with
// CreateContainerError one that the engine cannot create. What the OCI runtime reports (a program that is not there, or
// not to be executed, a mount that fails) is a process that could not be started.
func (r *Runtime) StartContainer(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer,
) (lifecycle.ContainerStarted, error) {
	var none lifecycle.ContainerStarted
	ctx, cancel := enginecall.WithTimeout(ctx, enginecall.CreateTimeout)
	defer cancel()
	if err := layout.CheckUID(uid); err != nil {
		return none, enginecall.Refused(ctx, lifecycle.ReasonCreateContainerError, err)
	}
	release, err := r.locks.Lock(ctx, uid+"/"+a.Container)
	if err != nil {
		// Something else is still done with the container. Nothing has failed, and it is tried again soon.
		return none, enginecall.Failure(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("wait for container %s: %w", a.Container, err))
	}
	defer release()
	c, err := r.adopt(ctx, uid, a.Ref)
	if err == nil && c == nil {
		c, err = r.create(ctx, uid, pod, a)
	}
	if err != nil {
		return none, enginecall.Refused(ctx, lifecycle.ReasonCreateContainerError, err)
	}
	info, err := record.Info(ctx, c)
	if err != nil {
		return none, enginecall.Failure(ctx, lifecycle.FailureUnavailable, "", err)
	}
	run, err := record.Run(info)
	if err != nil {
		return none, enginecall.Refused(ctx, lifecycle.ReasonCreateContainerError, err)
	}
	err = r.begin(ctx, pod, c, info.Labels)
	if err == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it was started too late: %w", ctx.Err()) // whoever asked has given it up, and would not look after it
	}
	if err != nil {
		err = enginecall.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonStartError, r.conceal(pod, a.Container, err))
		return none, r.undo(ctx, c, enginecall.WithArchitectures(err, run.Architecture))
	}
	return lifecycle.ContainerStarted{Ref: run.Ref, ID: run.ID, Image: run.Image, ImageID: run.ImageID, Architecture: run.Architecture}, nil
}

// adopt returns the container of a run if it is there and has, or had, a task: created, running or ended. What was begun
// and has none is taken away.
func (r *Runtime) adopt(ctx context.Context, uid string, ref lifecycle.Ref) (client.Container, error) {
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := record.Info(ctx, c)
	if err != nil {
		return nil, err
	}
	if info.Labels[record.LabelExit] != "" {
		return c, nil
	}
	_, err = r.task(ctx, c)
	if err == nil {
		return c, nil
	}
	if !errdefs.IsNotFound(err) {
		return nil, err
	}
	return nil, c.Delete(ctx, client.WithSnapshotCleanup)
}

// create makes the record of a run and its writable layer, once every older run of the container has ended.
func (r *Runtime) create(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer) (client.Container, error) {
	if err := r.endOlder(ctx, uid, a.Container); err != nil {
		// The old run is as it was: nothing has failed yet, and it is tried again soon.
		return nil, enginecall.Failure(ctx, lifecycle.FailureUnavailable, "", fmt.Errorf("end the former run: %w", err))
	}
	c, err := find(pod, a.Container)
	if err != nil {
		return nil, err
	}
	sandbox, err := r.engine.LoadSandbox(ctx, record.SandboxID(uid, a.Sandbox))
	if err != nil {
		return nil, err
	}
	img, err := r.images.Ensure(ctx, c.Image, spec.PullNever, nil)
	if err != nil {
		return nil, err
	}
	config, err := r.images.Config(ctx, img)
	if err != nil {
		return nil, err
	}
	ids, err := r.idsOf(uid, pod)
	if err != nil {
		return nil, err
	}
	user, err := oci.UserOf(pod, c, uid, config.Config.User)
	if err != nil {
		return nil, enginecall.Refused(ctx, lifecycle.ReasonCreateConfigError, err)
	}
	s, err := r.spec(ctx, uid, pod, c, a, config.Config, ids)
	if err != nil {
		return nil, errors.Join(err, r.giveUp(ctx, uid, a.Ref))
	}
	labels := record.Labels(uid, pod, a, c)
	labels[record.LabelMessage] = messageLabel(c)
	labels[record.LabelBoot] = r.boot
	labels[record.LabelImageID] = img.ConfigDigest
	labels[record.LabelImageArch] = config.Architecture
	labels[record.LabelStopSignal] = config.Config.StopSignal
	labels[record.LabelLog] = r.logPath(uid, pod.Name, a)
	maps.DeleteFunc(labels, func(_, v string) bool { return v == "" })

	id := record.ContainerID(uid, a.Ref)
	make := func() (client.Container, error) {
		return sandbox.NewContainer(ctx, id,
			client.WithSnapshotter(r.opts.Images.Snapshotter),
			client.WithNewSnapshot(id, r.images.Handle(img), remapped(ids)...),
			client.WithSpec(s, withUser(user)),
			client.WithContainerLabels(labels),
			record.WithDefinition(pod),
		)
	}
	made, err := make()
	if err == nil {
		return made, nil
	}
	// A layer without a record is what a crash, or this failure, has left.
	undone := r.removeSnapshot(ctx, id)
	if errdefs.IsAlreadyExists(err) && undone == nil {
		if made, err = make(); err == nil {
			return made, nil
		}
		undone = r.removeSnapshot(ctx, id)
	}
	return nil, errors.Join(err, undone, r.giveUp(ctx, uid, a.Ref))
}

// giveUp takes away what was prepared for a run that was not created.
func (r *Runtime) giveUp(ctx context.Context, uid string, ref lifecycle.Ref) error {
	ctx, cancel := enginecall.Detached(ctx, enginecall.UndoTimeout)
	defer cancel()
	return r.release(ctx, uid, record.ContainerID(uid, ref), ref.Container)
}

// release takes away the files and mounts that a run was shown.
func (r *Runtime) release(ctx context.Context, uid, id, container string) error {
	err := r.volumes.Release(ctx, uid, id)
	if e := os.Remove(r.messageFile(uid, container, id)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, r.dropProcess(uid, id))
}

func (r *Runtime) removeSnapshot(ctx context.Context, id string) error {
	ctx, cancel := enginecall.Detached(ctx, enginecall.UndoTimeout)
	defer cancel()
	err := r.client.SnapshotService(r.opts.Images.Snapshotter).Remove(ctx, id)
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove writable layer: %w", err)
	}
	return nil
}

// spec says how a run is to be, and prepares the files that it is shown.
func (r *Runtime) spec(
	ctx context.Context, uid string, pod *spec.Pod, c *spec.Container, a lifecycle.StartContainer, image imagespec.ImageConfig,
	ids idmap.Range,
) (*specs.Spec, error) {
	etc := r.etcDir(uid, a.Sandbox)
	if err := r.writeHosts(etc, uid, pod); err != nil {
		return nil, err
	}
	hostname := oci.Hostname(pod)
	if pod.HostNetwork {
		var err error
		if hostname, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	id := record.ContainerID(uid, a.Ref)
	pins := netns.Paths(r.sandboxDir(uid, a.Sandbox), namespacesOf(pod, ids))
	in := oci.Input{
		ID: id, Pod: pod, Container: c, Image: image,
		Hostname: hostname, Namespaces: joined(pins, ids),
		Files:       filesOf(etc, pins),
		CgroupsPath: r.cgroups.OCIPath(uid, id),
		Host:        r.machine,
	}
	var err error
	if in.Cgroup.Swap, in.Cgroup.OOMGroup, err = r.cgroups.Features(uid); err != nil {
		return nil, err
	}
	if c.TerminationMessagePath != "" {
		message := r.messageFile(uid, c.Name, id)
		if err := errors.Join(termination.Create(message), give(ids, message)); err != nil {
			return nil, err
		}
		in.Files = append(in.Files, oci.File{Path: path.Clean(c.TerminationMessagePath), Source: message})
	}
	s, err := r.configure(ctx, uid, in)
	if err == nil {
		err = r.appArmor.ensure(ctx, s.Process.ApparmorProfile)
	}
	if errors.Is(err, oci.ErrNoCommand) {
		return nil, err
	}
	return s, enginecall.Refused(ctx, lifecycle.ReasonCreateConfigError, err)
}

// configure completes a specification by what comes from elsewhere: variables, volumes, secrets. Its errors are those of the
// container's configuration.
func (r *Runtime) configure(ctx context.Context, uid string, in oci.Input) (*specs.Spec, error) {
	if err := r.completeSecurity(&in); err != nil {
		return nil, err
	}
	ips, _ := r.peersOf(uid)
	d, err := r.downwardOf(uid, in.Pod, ips)
	if err != nil {
		return nil, err
	}
	values := &remembered{from: r.config}
	real, err := oci.Resolve(in.Container, d, values)
	if err != nil {
		return nil, values.conceal(err)
	}
	images, err := r.mountImages(ctx, uid, in.Pod, in.Container, in.Namespaces)
	if err != nil {
		return nil, err
	}
	in.Mounts, err = r.volumes.Mounts(ctx, volumePod(d), volume.Request{
		Container: in.Container, Run: in.ID, Variables: real.Map(), Images: images,
		UserNamespace: in.User,
	})
	if err != nil {
		return nil, values.conceal(err)
	}
	in.Propagation = volume.RootPropagation(in.Mounts)
	in.Variables = real
	if len(values.secrets) == 0 {
		return oci.Spec(ctx, in)
	}
	var p shim.Process
	p.Args, p.Env = oci.Process(&in)
	if in.Variables, err = oci.Resolve(in.Container, d, hiding{values}); err != nil {
		return nil, values.conceal(err)
	}
	s, err := oci.Spec(ctx, in)
	if err != nil {
		return nil, err
	}
	s.Annotations, err = r.keepProcess(uid, in.ID, p)
	return s, err
}

// begin brings a container to where its process has been started: it may be there already.
func (r *Runtime) begin(ctx context.Context, pod *spec.Pod, c client.Container, labels map[string]string) error {
	if labels[record.LabelExit] != "" {
		return nil
	}
	ctx, cancel := enginecall.Detached(ctx, enginecall.CreateTimeout)
	defer cancel()
	ids, err := r.idsOf(labels[record.LabelUID], pod)
	if err != nil {
		return err
	}
	task, err := c.Task(ctx, nil)
	if errdefs.IsNotFound(err) {
		task, err = c.NewTask(ctx, engine.LogTo(labels[record.LabelLog], r.logOptions()), withOwner(ids)...)
	}
	err = errors.Join(err, r.dropProcess(labels[record.LabelUID], c.ID())) // also after a daemon that was killed before it came to that
	if err != nil {
		return err
	}
	status, err := task.Status(ctx)
	if err != nil {
		return err
	}
	if status.Status != client.Created {
		return nil
	}
	return task.Start(ctx)
}
