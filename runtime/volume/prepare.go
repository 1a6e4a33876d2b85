package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/podstead/podstead/spec"
)

// Prepare makes every volume of a pod ready, or finds it so: after a crash, a restart and a boot alike. Its error has
// one part for each volume that cannot be had yet (`volume "conf": configmap "shop" not found`), in the kubelet's words
// where it has some; the others are ready all the same, and the caller tries again. What a container or a person has
// changed in a volume stays as it is, and what once was written from a source that is gone now, too.
//
// The folders of images are the caller's, see [Request]. Giving a large persistent volume to the fsGroup goes on after
// the end of ctx, so that a later call finds it done.
func (s *Set) Prepare(ctx context.Context, p Pod) error {
	_, err := do(ctx, s, p.UID, func(ctx context.Context) (struct{}, error) {
		var failed problems
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			err := ctx.Err()
			if err == nil {
				err = s.prepare(ctx, p, v)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("volume %q: %w", v.Name, err))
			}
		}
		return struct{}{}, failed.err()
	})
	return err
}

func (s *Set) prepare(ctx context.Context, p Pod, v *spec.Volume) error {
	if err := checkName("volume", v.Name); err != nil {
		return err
	}
	switch {
	case v.EmptyDir != nil:
		return s.prepareEmptyDir(p, v)
	case v.HostPath != nil:
		return s.prepareHostPath(v.HostPath)
	case v.PersistentVolumeClaim != nil:
		return s.prepareClaim(ctx, p, v)
	case v.Image != nil:
		return nil
	case isContent(v):
		return s.prepareContent(p, v)
	}
	return errors.New("it has no source")
}
