package supervisor

import (
	"context"
	"log/slog"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// startTimeout bounds how long a start waits for its turn and for the disk. The limit on parallel starts only smooths load, and with
// a hanging disk a running pod is better than a durable one.
const startTimeout = 10 * time.Second

// saveTimeout bounds how long the answer to a client waits for the disk. A write that takes 2 s is reported, so the client then finds the
// event and the condition.
const saveTimeout = 3 * time.Second

// shared is what all loops of a supervisor use.
type shared struct {
	runtime     Runtime
	prober      Prober
	hooks       Hooks
	store       state.Store
	checkpoints state.Checkpoints // nil: none are kept
	journal     event.Journal     // nil: none is kept
	now         Clock
	policy      admission.Policy
	log         *slog.Logger
	ring        *event.Ring
	starts      chan struct{} // holds one token per start in progress
	// restored has the causes that the journal of earlier supervisors leads to, by UID. It is nil after the recovery.
	restored map[string]emit.Causes
	// decide is [lifecycle.Decide], except in tests.
	decide func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision
}

// acquireStart waits for a turn to start a container, for [startTimeout] at most, and returns the function that releases it.
func (s *shared) acquireStart(ctx context.Context) (release func()) {
	select {
	case s.starts <- struct{}{}:
		return func() { <-s.starts }
	case <-time.After(startTimeout):
	case <-ctx.Done():
	}
	return func() {}
}
