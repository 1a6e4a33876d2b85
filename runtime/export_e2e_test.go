//go:build e2e

package runtime

import (
	"context"
	"time"

	"github.com/containerd/containerd/v2/core/snapshots"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Damage overwrites a label of a run's record, and its pod's definition.
func (r *Runtime) Damage(ctx context.Context, uid string, ref lifecycle.Ref, label string) error {
	ctx = enginecall.Context(ctx)
	info, err := r.client.ContainerService().Get(ctx, record.ContainerID(uid, ref))
	if err != nil {
		return err
	}
	info.Labels[label] = "damaged"
	info.Extensions[record.PodExtension] = &anypb.Any{TypeUrl: record.PodExtension, Value: []byte("damaged")}
	_, err = r.client.ContainerService().Update(ctx, info)
	return err
}

// WriteExit writes an exit down and does no more, as a daemon does that is killed then.
func (r *Runtime) WriteExit(ctx context.Context, uid string, ref lifecycle.Ref, status uint32) error {
	ctx = enginecall.Context(ctx)
	c, err := r.client.LoadContainer(ctx, record.ContainerID(uid, ref))
	if err != nil {
		return err
	}
	return r.writeExit(ctx, c, exitFrom(status, time.Now()))
}

// Left lists what the engine holds that belongs to pods: containers, sandboxes, writable layers, leases.
func (r *Runtime) Left(ctx context.Context) (left []string, err error) {
	ctx = enginecall.Context(ctx)
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
	return r.cgroups.Container(uid, record.ContainerID(uid, ref)), r.cgroups.Container(uid, record.SandboxID(uid, sandbox))
}
