//go:build e2e

package runtime

import (
	"context"

	"github.com/containerd/containerd/v2/core/snapshots"
)

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
