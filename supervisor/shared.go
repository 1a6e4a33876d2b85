package supervisor

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/internal/diskreserve"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
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
	conditions  HostConditions
	rebooter    Rebooter // nil: reboots are disabled
	peers       peers
	store       state.Store
	checkpoints state.Checkpoints // nil: none are kept
	journal     event.Journal     // nil: none is kept
	space       *diskreserve.Reserve
	quarantine  *state.Quarantine // nil: none is kept
	crash       string            // of the last daemon; empty: it did not
	uncleanBoot string            // that ended without a shutdown of the host; empty: none is known
	now         Clock
	policy      atomic.Pointer[admission.Policy]
	damaged     []lifecycle.Damage // files of the engine
	log         *slog.Logger
	ring        *event.Ring
	starts      chan struct{} // holds one token per start in progress
	// restored has the causes that the journal of earlier supervisors leads to, by UID. After the recovery it has only those of pods that
	// are not supervised yet.
	restored map[string]emit.Causes
	minReady *time.Duration // see [Options]
	// decide is [lifecycle.Decide], except in tests.
	decide func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision
	// between is [change.Between], except in tests.
	between func(from, to *spec.Pod) []change.Change
}

// trial returns a trial of a definition that begins now.
func (s *shared) trial(pod *spec.Pod, rollsBack bool, now lifecycle.Instant) lifecycle.Trial {
	within, minReady, _ := pod.UpdateRule()
	if s.minReady != nil && pod.Update == nil {
		minReady = *s.minReady
	}
	return lifecycle.NewTrial(within, minReady, rollsBack, now)
}

// peers is what the wait for another pod requires of the set of pods.
type peers interface {
	// peer returns the newest snapshot of a pod, and a channel that is closed when it may have changed. The snapshot is nil if there is no
	// such pod, or if it has not been recovered yet.
	peer(name string) (*Snapshot, <-chan struct{})
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
