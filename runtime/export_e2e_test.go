//go:build e2e

package runtime

import (
	"context"
	"time"

	"github.com/containerd/containerd/v2/core/snapshots"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Damage overwrites a label of a run's record, and its pod's definition.
func (r *Runtime) Damage(ctx context.Context, uid string, ref lifecycle.Ref, label string) error {
	ctx = inNamespace(ctx)
	record, err := r.client.ContainerService().Get(ctx, containerID(uid, ref))
	if err != nil {
		return err
	}
	record.Labels[label] = "damaged"
	record.Extensions[podExtension] = &anypb.Any{TypeUrl: podExtension, Value: []byte("damaged")}
	_, err = r.client.ContainerService().Update(ctx, record)
	return err
}

// WriteExit writes an exit down and does no more, as a daemon does that is killed then.
func (r *Runtime) WriteExit(ctx context.Context, uid string, ref lifecycle.Ref, status uint32) error {
	ctx = inNamespace(ctx)
	c, err := r.client.LoadContainer(ctx, containerID(uid, ref))
	if err != nil {
		return err
	}
	return r.writeExit(ctx, c, exitFrom(status, time.Now()))
}

// Left lists what the engine holds that belongs to pods: containers, sandboxes, writable layers, leases.
func (r *Runtime) Left(ctx context.Context) (left []string, err error) {
	ctx = inNamespace(ctx)
	containers, err := r.client.Containers(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		left = append(left, "container "+c.ID())
	}
	sandboxes, err := r.sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range sandboxes {
		left = append(left, "sandbox "+s.ID)
	}
	err = r.client.SnapshotService(r.opts.Images.Snapshotter).Walk(ctx, func(_ context.Context, s snapshots.Info) error {
		if s.Kind != snapshots.KindCommitted {
			left = append(left, "snapshot "+s.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	leases, err := r.client.LeasesService().List(ctx)
	for _, l := range leases {
		left = append(left, "lease "+l.ID)
	}
	return left, err
}

// KeepProcess keeps the process of a run and does no more, as a daemon does that is killed then. It returns the file.
func (r *Runtime) KeepProcess(uid, id string) (string, error) {
	_, err := r.keepProcess(uid, id, shim.Process{Env: []string{"PASSWORD=s3cret"}})
	return r.processFile(uid, id), err
}

// CgroupsOf is where the container of a run lies, and the process of a sandbox, below the mounts of hierarchies.
func (r *Runtime) CgroupsOf(uid string, ref lifecycle.Ref, sandbox int) (container, process string) {
	return r.cgroups.dir(uid, containerID(uid, ref)), r.cgroups.dir(uid, sandboxID(uid, sandbox))
}
