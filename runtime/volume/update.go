package volume

import (
	"context"
	"fmt"
)

// Update writes the volumes of a pod that come from config maps, secrets and fields anew, each in one step, and reports
// whether any has changed. A volume whose source is missing or cannot be read keeps what it has, and is named in the
// error beside what the others got. What was mounted by a subPath does not follow.
func (s *Set) Update(ctx context.Context, p Pod) (changed bool, err error) {
	return do(ctx, s, p.UID, func(ctx context.Context) (bool, error) {
		changed := false
		var failed problems
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
