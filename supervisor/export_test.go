package supervisor

import (
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
)

// CompareWith replaces [change.Between] before the supervisor has pods.
func (s *Supervisor) CompareWith(between func(from, to *spec.Pod) []change.Change) {
	s.shared.between = between
}

// KeepCollected replaces the number of collected pods without a file whose status is kept, before the supervisor has pods.
func (s *Supervisor) KeepCollected(n int) { s.maxCollected = n }
