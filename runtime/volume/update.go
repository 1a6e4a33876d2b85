package volume

import (
	"context"
	"fmt"
)

// Update rewrites the pod's volumes from config maps, secrets and fields, each atomically, and reports whether any has
// changed. A volume whose source is missing or unreadable keeps its files and is listed in the error; the others are
// still updated. Mounts with a subPath are not updated.
func (s *Set) Update(ctx context.Context, p Pod) (changed bool, err error) {
	return withPod(ctx, s, p.UID, func(ctx context.Context) (bool, error) {
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
			one, err := s.updateContent(p, v)
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
