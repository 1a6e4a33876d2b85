package fakeruntime

import (
	"context"
	"fmt"
	"io/fs"
	"maps"

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

// Volumes returns the persistent volumes that pods have used and that were not removed, with the projects of these pods.
func (r *Runtime) Volumes(context.Context) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.volumes), nil
}

// RemoveVolume removes a persistent volume.
func (r *Runtime) RemoveVolume(ctx context.Context, name string) error {
	return r.do(ctx, Call{Method: "RemoveVolume"}, func() error {
		if _, exists := r.volumes[name]; !exists {
			return fmt.Errorf("remove persistentvolumeclaim %q: %w", name, fs.ErrNotExist)
		}
		delete(r.volumes, name)
		return nil
	})
}

// claim creates the persistent volumes of a pod. The caller holds the lock.
func (r *Runtime) claim(pod *spec.Pod) {
	for i := range pod.Volumes {
		c := pod.Volumes[i].PersistentVolumeClaim
		if c == nil {
			continue
		}
		if _, exists := r.volumes[c.ClaimName]; !exists {
			r.volumes[c.ClaimName] = pod.Labels[spec.ProjectLabel]
		}
	}
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
