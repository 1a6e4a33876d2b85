package runtime

import "context"

// Volumes returns the names of the persistent volumes, sorted.
func (r *Runtime) Volumes(ctx context.Context) ([]string, error) {
	list, err := r.volumes.ListClaims(ctx)
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names, err
}

// RemoveVolume removes a persistent volume with what is in it. The caller knows that no pod uses it.
func (r *Runtime) RemoveVolume(ctx context.Context, name string) error {
	return r.volumes.RemoveClaim(ctx, name)
}
