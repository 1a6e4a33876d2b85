package podfiles

import (
	"context"
	"fmt"

	"github.com/podstead/podstead/spec"
)

// Definitions returns the definitions in the files of the directory, also those that do not run. The caller must not change them.
func (s *Set) Definitions(ctx context.Context) ([]*spec.Pod, error) {
	if err := s.begin(ctx); err != nil {
		return nil, fmt.Errorf("list the pods directory: %w", err)
	}
	defer s.turn.Unlock()
	var list []*spec.Pod
	for _, c := range s.world.contents {
		if c.pod != nil {
			list = append(list, c.pod)
		}
	}
	return list, nil
}
