package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/image"
)

// dropLeases takes away the leases of calls that a former daemon was killed in: they would keep what it had half made for a
// day. Nothing may have begun yet.
func (r *Runtime) dropLeases(ctx context.Context) error {
	service := r.client.LeasesService()
	list, err := service.List(ctx)
	if err != nil {
		return fmt.Errorf("list leases: %w", err)
	}
	var errs []error
	for _, l := range list {
		if image.Owns(l) {
			continue // a download that goes on where it was
		}
		if err := service.Delete(ctx, l); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete lease %s: %w", l.ID, err))
		}
	}
	return errors.Join(errs...)
}
