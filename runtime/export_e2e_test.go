//go:build e2e

package runtime

import (
	"context"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/podstead/podstead/runtime/container"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Damage overwrites a label and the pod definition in the record of a container.
func (r *Runtime) Damage(ctx context.Context, uid string, ref lifecycle.Ref, label string) error {
	ctx = engine.Context(ctx)
	info, err := r.client.ContainerService().Get(ctx, record.ContainerID(uid, ref))
	if err != nil {
		return err
	}
	info.Labels[label] = "damaged"
	info.Extensions[record.PodExtension] = &anypb.Any{TypeUrl: record.PodExtension, Value: []byte("damaged")}
	_, err = r.client.ContainerService().Update(ctx, info)
	return err
}

// WriteExit records an exit without deleting the task, like a daemon that is killed in between.
func (r *Runtime) WriteExit(ctx context.Context, uid string, ref lifecycle.Ref, status uint32) error {
	ctx = engine.Context(ctx)
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if err != nil {
		return err
	}
	return exit.Write(ctx, c, exit.FromStatus(status, time.Now()))
}

// Undo marks a container as one that could not be started, like a daemon that is killed before it has removed it.
func (r *Runtime) Undo(ctx context.Context, uid string, ref lifecycle.Ref) error {
	ctx = engine.Context(ctx)
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if err == nil {
		_, err = c.SetLabels(ctx, map[string]string{record.LabelUndone: "true"})
	}
	return err
}

// Uncreate deletes the process of a container, so that its record is that of a daemon that was killed before it created the process.
func (r *Runtime) Uncreate(ctx context.Context, uid string, ref lifecycle.Ref) error {
	ctx = engine.Context(ctx)
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if err != nil {
		return err
	}
	task, err := c.Task(ctx, nil)
	if err != nil {
		return err
	}
	_, err = task.Delete(ctx, client.WithProcessKill)
	return err
}

// Left lists what the engine has of pods: containers, sandboxes, layers that nothing but a label keeps, views, leases. The next collection
// removes other layers.
func (r *Runtime) Left(ctx context.Context) (left []string, err error) {
	ctx = engine.Context(ctx)
	containers, err := r.client.Containers(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		left = append(left, "container "+c.ID())
	}
	sandboxes, err := record.Sandboxes(ctx, r.client)
	if err != nil {
		return nil, err
	}
	for _, s := range sandboxes {
		left = append(left, "sandbox "+s.ID)
	}
	err = r.client.SnapshotService(r.opts.Images.Snapshotter).Walk(ctx, func(_ context.Context, s snapshots.Info) error {
		if s.Kind == snapshots.KindView || s.Kind == snapshots.KindActive && s.Labels["containerd.io/gc.root"] != "" {
			left = append(left, "snapshot "+s.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	leased, err := r.client.LeasesService().List(ctx)
	for _, l := range leased {
		left = append(left, "lease "+l.ID)
	}
	return left, err
}

// Collect runs a garbage collection. Removals during the collection that may be running already are not missed.
func (r *Runtime) Collect(ctx context.Context) error {
	ctx = engine.Context(ctx)
	for range 2 {
		l, err := r.client.LeasesService().Create(ctx, leases.WithRandomID(), leases.WithExpiration(time.Minute))
		if err == nil {
			err = r.client.LeasesService().Delete(ctx, l, leases.SynchronousDelete)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteProcessFile writes the process file of a container without creating the container, like a daemon that is killed in between. It
// returns the file.
func (r *Runtime) WriteProcessFile(uid, id string) (string, error) {
	files := container.NewProcessFiles(r.dirs)
	_, err := files.Write(uid, id, ocibundle.Process{Env: []string{"PASSWORD=s3cret"}})
	return files.Path(uid, id), err
}

// CgroupsOf returns the cgroup of a container and that of the sandbox's process, relative to a mount point.
func (r *Runtime) CgroupsOf(uid string, ref lifecycle.Ref, sandbox int) (container, process string) {
	return r.cgroups.Container(uid, record.ContainerID(uid, ref)), r.cgroups.Container(uid, record.SandboxID(uid, sandbox))
}
