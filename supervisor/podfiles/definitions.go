package podfiles

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
)

// settleTimeout bounds the wait for files that keep changing.
const settleTimeout = 10 * time.Second

// Unknown is why it is not known which pods the files of the directory define.
type Unknown struct{ Cause, Hint string }

// Definitions returns the definitions in the files of the directory, also those that do not run, and those of files that may be
// half-written. The caller must not change them.
func (s *Set) Definitions(ctx context.Context) ([]*spec.Pod, error) {
	if err := s.begin(ctx); err != nil {
		return nil, fmt.Errorf("list the pods directory: %w", err)
	}
	defer s.turn.Unlock()
	return s.world.definitions(), nil
}

// Claimants returns the definitions that may use persistent volumes: those of pod files and of generations. It reads the directory. With
// settle it waits for files that may be half-written. unknown is why there may be others; nil: there are none.
func (s *Set) Claimants(ctx context.Context, settle bool) (list []*spec.Pod, unknown *Unknown, err error) {
	begin := s.begin
	if settle {
		begin = s.beginSettled
	}
	if err := begin(ctx); err != nil {
		return nil, nil, fmt.Errorf("list the pods directory: %w", err)
	}
	defer s.turn.Unlock()
	if err := s.rollouts.Load(ctx); err != nil {
		return nil, nil, fmt.Errorf("read the generations of the pods: %w", err)
	}
	return append(s.world.definitions(), s.rollouts.Definitions()...), s.world.unknown(), nil
}

// beginSettled is [Set.begin] when no file may be half-written any more, or after settleTimeout.
func (s *Set) beginSettled(ctx context.Context) error {
	for deadline := time.Now().Add(settleTimeout); ; {
		if err := s.begin(ctx); err != nil {
			return err
		}
		due := s.settled
		if due.IsZero() || due.After(deadline) || time.Now().After(deadline) {
			return nil
		}
		s.turn.Unlock()
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// definitions returns the definitions in all files. A file that may be half-written has the one before and the newest one.
func (w *world) definitions() (list []*spec.Pod) {
	for _, contents := range [...]map[string]*content{w.contents, w.changing} {
		for _, c := range contents {
			if c.pod != nil {
				list = append(list, c.pod)
			}
		}
	}
	return list
}

// unknown returns why the definitions may not be all; nil: they are.
func (w *world) unknown() *Unknown {
	if w.directory.lost != nil {
		return &Unknown{Cause: w.directory.message(w.path), Hint: "restore the directory"}
	}
	for _, path := range slices.Sorted(maps.Keys(w.contents)) {
		if w.contents[path].pod == nil {
			return &Unknown{Cause: fmt.Sprintf("pod file %s is invalid", filepath.Base(path)), Hint: "correct or remove the file"}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(w.changing)) {
		return &Unknown{Cause: fmt.Sprintf("pod file %s changed a moment ago", filepath.Base(path)), Hint: "retry when the file is written"}
	}
	return nil
}
