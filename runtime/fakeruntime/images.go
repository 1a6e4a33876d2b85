package fakeruntime

import (
	"context"
	"maps"
	"slices"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// KeepImages keeps images for a pod until the next call for the pod. Images that are not present are skipped.
func (r *Runtime) KeepImages(ctx context.Context, pod string, images []lifecycle.Image) error {
	return r.do(ctx, Call{Method: "KeepImages"}, func() error {
		var ids []string
		for _, i := range images {
			if r.hasImage(i.ID) && !slices.Contains(ids, i.ID) {
				ids = append(ids, i.ID)
			}
		}
		if delete(r.kept, pod); len(ids) > 0 {
			r.kept[pod] = ids
		}
		return nil
	})
}

// KeptImages returns the names of the pods for which images are kept, sorted.
func (r *Runtime) KeptImages(ctx context.Context) (pods []string, err error) {
	err = r.do(ctx, Call{Method: "KeptImages"}, func() error {
		pods = slices.Sorted(maps.Keys(r.kept))
		return nil
	})
	return pods, err
}

// hasImage reports whether the image with an ID is present: a name refers to it, a run uses it, or it is kept. Others are deleted at once.
// The caller holds the lock.
func (r *Runtime) hasImage(id string) bool {
	for _, name := range r.images {
		if r.imageID(name) == id {
			return true
		}
	}
	for _, p := range r.pods {
		for _, run := range p.runs {
			if run.ImageID == id {
				return true
			}
		}
	}
	for _, ids := range r.kept {
		if slices.Contains(ids, id) {
			return true
		}
	}
	return false
}
