package volume

import (
	"context"
	"fmt"
)

// Update rewrites the volumes of a pod from config maps, secrets and fields, each atomically, and reports whether any has changed. Function
// current returns the pod as it is now; updates of a pod are serialized, and each calls it first. A volume whose source is missing,
// unreadable or does not respond before ctx ends keeps its files and is listed in the error; the others are still updated. Mounts with a
// subPath are not updated.
//
// Other operations on the pod do not wait for a source.
func (s *Set) Update(ctx context.Context, uid string, current func() (Pod, error)) (changed bool, err error) {
	if err := checkName("pod UID", uid); err != nil {
		return false, err
	}
	return exclusive(ctx, &s.locks, "pod/"+uid+"/update", func(ctx context.Context) (bool, error) {
		p, err := current()
		if err != nil {
			return false, err
		}
		changed := false
		var failed errorList
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			if !isContent(v) || ctx.Err() != nil {
				continue
			}
			if err := checkName("volume", v.Name); err != nil {
				return changed, err
			}
			one, err := s.updateContent(ctx, p, v)
			if err != nil {
				failed = append(failed, fmt.Errorf("volume %q: %w", v.Name, err))
			}
			changed = changed || one
		}
		if err := ctx.Err(); err != nil {
			failed = append(failed, err)
		}
		return changed, failed.err()
	})
}
