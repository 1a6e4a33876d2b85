package podfiles

import (
	"context"
	"fmt"
	"slices"

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

// Claimants returns the definitions that may use persistent volumes: those of pod files and of generations. A pod file without a definition is
// in unknown: what it uses is not known.
func (s *Set) Claimants(ctx context.Context) (list []*spec.Pod, unknown []string, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, nil, fmt.Errorf("list the pods directory: %w", err)
	}
	defer s.turn.Unlock()
	for path, c := range s.world.contents {
		if c.pod != nil {
			list = append(list, c.pod)
		} else {
			unknown = append(unknown, path)
		}
	}
	slices.Sort(unknown)
	return append(list, s.rollouts.Definitions()...), unknown, nil
}
