package fakeruntime

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/podstead/podstead/spec"
)

// Admit refuses what [Options.Refuse] refuses.
func (r *Runtime) Admit(pod *spec.Pod) error {
	if r.options.Refuse == nil {
		return nil
	}
	return r.options.Refuse(pod)
}

// Volumes returns the persistent volumes that pods have named, and that were not removed since.
func (r *Runtime) Volumes(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.volumes), nil
}

// RemoveVolume forgets a persistent volume.
func (r *Runtime) RemoveVolume(ctx context.Context, name string) error {
	return r.do(ctx, Call{Method: "RemoveVolume"}, func() error {
		i := slices.Index(r.volumes, name)
		if i < 0 {
			return fmt.Errorf("remove persistentvolumeclaim %q: %w", name, fs.ErrNotExist)
		}
		r.volumes = slices.Delete(r.volumes, i, i+1)
		return nil
	})
}

// claim makes the persistent volumes of a pod; the caller holds the lock.
func (r *Runtime) claim(pod *spec.Pod) {
	for i := range pod.Volumes {
		if c := pod.Volumes[i].PersistentVolumeClaim; c != nil && !slices.Contains(r.volumes, c.ClaimName) {
			r.volumes = append(r.volumes, c.ClaimName)
		}
	}
	slices.Sort(r.volumes)
}

// RemoveNetwork does nothing: pods of the fake have none.
func (r *Runtime) RemoveNetwork(context.Context) error { return nil }
