package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/podstead/podstead/spec"
)

// Prepare sets up all volumes of a pod. It is idempotent, also after a crash, a restart and a reboot. The error lists
// each volume that cannot be set up yet (`volume "conf": configmap "shop" not found`), in the kubelet's words where it
// has some. The other volumes are ready, and the caller retries. Changes by containers or users stay, and so do files
// whose source no longer exists.
//
// The directories of images are set up by the caller, see [Request]. Changing the group of a large persistent volume
// continues after the end of ctx, so that a later call finds it done.
func (s *Set) Prepare(ctx context.Context, p Pod) error {
	_, err := withPod(ctx, s, p.UID, func(ctx context.Context) (struct{}, error) {
		var failed errorList
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
		return s.prepareEmptyDir(ctx, p, v)
	case v.HostPath != nil:
		return s.prepareHostPath(v.HostPath)
	case v.PersistentVolumeClaim != nil:
		return s.prepareClaim(ctx, p, v)
	case v.Image != nil:
		return nil
	case isContent(v):
		return s.prepareContent(p, v)
	}
	return errors.New("a volume source is required")
}
