package supervisor

import (
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// CompareWith replaces [change.Between] before the supervisor has pods.
func (s *Supervisor) CompareWith(between func(from, to *spec.Pod) []change.Change) {
	s.shared.between = between
}

// KeepCollected replaces the number of collected pods without a file whose status is kept, before [Supervisor.Recover].
func (s *Supervisor) KeepCollected(n int) { s.maxCollected = n }

// BlockLoop blocks the loop of a pod until the returned function is called.
func (s *Supervisor) BlockLoop(name string) (release func()) {
	blocked := make(chan struct{})
	s.mu.Lock()
	l := s.pods[name]
	s.mu.Unlock()
	l.mailbox <- startup{prepare: func(lifecycle.Instant) { <-blocked }}
	return func() { close(blocked) }
}
