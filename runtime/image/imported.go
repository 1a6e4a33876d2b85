package image

import (
	"context"
	"maps"
	"time"
)

// Protected returns images that must not be removed although no pod uses them: those of [Store.Held], and those that were imported for pods
// that may not exist yet, see [Store.ImportUsed]. It implements [Protected].
func (s *Store) Protected(ctx context.Context) (map[string]string, error) {
	list, err := s.claimed(ctx, byImport)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for record, l := range list {
		until, err := time.Parse(time.RFC3339, l.Labels[labelExpire])
		if err == nil && time.Now().Before(until) {
			reasons[record] = "imported for a pod"
		}
	}
	held, err := s.Held(ctx)
	maps.Copy(reasons, held)
	return reasons, err
}
