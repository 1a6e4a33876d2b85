package fakeruntime

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Admit rejects the pods that [Options.Refuse] rejects.
func (r *Runtime) Admit(pod *spec.Pod) error {
	if r.options.Refuse == nil {
		return nil
	}
	return r.options.Refuse(pod)
}

// Allocatable returns [Options.Allocatable].
func (r *Runtime) Allocatable() spec.ResourceList { return r.options.Allocatable }

// Volumes returns the persistent volumes that pods have used and that were not removed.
func (r *Runtime) Volumes(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.volumes), nil
}

// RemoveVolume removes a persistent volume.
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

// claim creates the persistent volumes of a pod. The caller holds the lock.
func (r *Runtime) claim(pod *spec.Pod) {
	for i := range pod.Volumes {
		if c := pod.Volumes[i].PersistentVolumeClaim; c != nil && !slices.Contains(r.volumes, c.ClaimName) {
			r.volumes = append(r.volumes, c.ClaimName)
		}
	}
	slices.Sort(r.volumes)
}

// RemoveNetwork does nothing: the fake has no network.
func (r *Runtime) RemoveNetwork(context.Context) error { return nil }

// Damaged returns nothing: the fake has no files.
func (r *Runtime) Damaged(context.Context) []lifecycle.Damage { return nil }

// Readable returns the error of [Options.Unreadable] for the pod.
func (r *Runtime) Readable(ctx context.Context, pod *spec.Pod) error {
	return r.do(ctx, Call{Method: "Readable"}, func() error {
		if r.options.Unreadable == nil {
			return nil
		}
		return r.options.Unreadable(pod)
	})
}
