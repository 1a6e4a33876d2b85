package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// Options configure a [Supervisor]. Runtime, Store and Clock are required. Prober and Hooks are required for pods with probes and
// hooks, Conditions for pods that wait for conditions of the host.
type Options struct {
	Runtime     Runtime
	Prober      Prober
	Hooks       Hooks
	Conditions  HostConditions
	Store       state.Store
	Checkpoints state.Checkpoints // nil: probes start again after a restart of the daemon, and stop signals may be sent twice
	Journal     event.Journal     // nil: events are lost at a restart of the daemon
	// Space is for states, events, and the actions of pods if the disk is full; nil: there is none.
	Space *disk.Reserve
	// Quarantine keeps pods whose handling crashed the daemon; nil: none is kept.
	Quarantine *state.Quarantine
	// Crash is why the last daemon crashed; empty: it did not.
	Crash string
	// UncleanBoot is the ID of an earlier boot that ended without a shutdown of the host; empty: none is known.
	UncleanBoot string
	// Rebooter reboots the host for pods that stay unready; nil: it is not rebooted.
	Rebooter Rebooter
	Clock    Clock
	// Policy is the admission policy for new pods and ephemeral containers.
	Policy admission.Policy
	Log    *slog.Logger // nil: discarded
	// LogEvents logs every event until ctx ends, and then the remaining ones (default [event.Ring.Log]).
	LogEvents func(ctx context.Context, r *event.Ring, log *slog.Logger)
	// Damaged are the files of the engine that were damaged when it started. [Supervisor.Recover] emits an event for each pod.
	Damaged []lifecycle.Damage
	// MaxParallelStarts limits how many containers start at the same time; 0: the number of CPUs.
	MaxParallelStarts int
	// Finished limits what pods that have finished use.
	Finished FinishedPods
	// Events is how many events are kept in memory; 0: 4096.
	Events int
	// MinReady replaces the minimum ready time of pods without [spec.Update], for tests; nil: see [spec.Pod.UpdateRule].
	MinReady *time.Duration
}

// Supervisor is the set of pods of a host. It is safe for concurrent use.
type Supervisor struct {
	shared *shared
	ctx    context.Context //nolint:containedctx // of the loops, which end with the supervisor and not with a call
	cancel context.CancelFunc
	loops  sync.WaitGroup
	// The event log and the journal end after the loops, so that they have all events.
	recording     sync.WaitGroup
	stopRecording context.CancelFunc

	mu       sync.Mutex
	pods     map[string]*loop       // by name; nil: the name is reserved for a pod that is being added
	adding   map[string]*spec.Pod   // the pods that are being added
	changing map[string]reservation // the new definitions of pods that are being changed or started, by name
	removing map[string]int         // how many calls are removing a volume, by name of the volume
	blocked  map[string]*heldPod    // by name: the pods that are not supervised
	leaving  bool
	changed  chan struct{}

	turning  sync.Mutex // held while turns are computed
	jobTurns map[string]jobTurns
	// recovered is closed when all pods of an earlier supervisor are known.
	recovered chan struct{}
	sessions  map[string]*session
	finished  FinishedPods
	// schedules are the names of the pods that are started by a schedule; nil: they are not known yet.
	schedules []string

	maxCollected int // [maxCollected], except in tests
}

// session is a client whose pods stop when it disconnects, such as `podstead run` in a terminal.
type session struct {
	keepalive chan struct{}
	final     map[string]Snapshot // by UID: the final states of pods that were deleted
}

// initialize is called by a new loop before its first decision.
type initialize func(*loop, lifecycle.Instant)

// heldPod is a pod that is not supervised: a later version has written its state file, or its handling crashed the daemon. Clients see it,
// and can delete it.
type heldPod struct {
	snapshot Snapshot
	why      string                      // as the end of a message
	takeUp   func(then initialize) *loop // starts its loop
	// takeUpForced is takeUp for a forced deletion.
	takeUpForced func(then initialize) *loop
	completed    bool // it was known to have completed
}

// StopOptions are options of [Supervisor.Stop].
type StopOptions struct {
	UID    string         // empty: the pod of the name, whatever its UID
	Grace  *time.Duration // nil: the grace period of the pod; 0: none
	Delete bool           // delete the pod after it has stopped
	By     string         // the client, for people
}

// forced reports whether a forced deletion was requested.
func (o StopOptions) forced() bool { return o.Delete && o.Grace != nil && *o.Grace <= 0 }

// Errors of several methods.
var (
	ErrNotFound = errors.New("not found")
	ErrLeaving  = errors.New("the supervisor is shutting down")
)

// NameTakenError reports that a pod of that name exists, or that the name cannot be used.
type NameTakenError struct {
	Name   string
	Holder string // why, as the end of the message
	// Stopping is the UID of the existing pod if it is of the same file, is being stopped and will be deleted. The new pod can be added
	// afterwards.
	Stopping string
	// Terminated is the UID of the existing pod if it has terminated, and was kept by a session of a file in the same directory that has
	// ended: the next run of the file replaces it.
	Terminated string
	// Deleting reports that the existing pod is being deleted.
	Deleting bool
	// Different reports that the existing pod is of a different file.
	Different bool
	// File is the file in the pods directory that the existing pod follows; empty: it follows none.
	File string
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("pod %q already exists: %s", e.Name, e.Holder)
}

// Pods returns all pods, sorted by name.
func (s *Supervisor) Pods() []Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := make([]*Snapshot, 0, len(s.pods)+len(s.blocked)) // a snapshot is large
	for _, l := range s.pods {
		if l != nil {
			sorted = append(sorted, l.snapshot.Load())
		}
	}
	for _, p := range s.blocked {
		sorted = append(sorted, &p.snapshot)
	}
	order.Sort(sorted, func(a, b *Snapshot) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	list := make([]Snapshot, len(sorted))
	for i, snapshot := range sorted {
		list[i] = *snapshot
	}
	return list
}

// Count returns the number of pods.
func (s *Supervisor) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.blocked)
	for _, l := range s.pods {
		if l != nil {
			n++
		}
	}
	return n
}

// Pod returns the pod of a name.
func (s *Supervisor) Pod(name string) (Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.blocked[name]; p != nil {
		return p.snapshot, true
	}
	l := s.pods[name]
	if l == nil {
		return Snapshot{}, false
	}
	return *l.snapshot.Load(), true
}

// Now reads the clock of the facts.
func (s *Supervisor) Now() lifecycle.Instant { return s.shared.now() }

// Events returns the newest events of all pods.
func (s *Supervisor) Events() *event.Ring { return s.shared.ring }

// Changed returns a channel that is closed when the set of pods or the snapshot of a pod changes after the call.
func (s *Supervisor) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Supervisor) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notifyLocked()
}

// notifyLocked is notify for callers that hold s.mu.
func (s *Supervisor) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// names returns the names whose events are kept: those of all pods and schedules.
func (s *Supervisor) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Keys(s.pods)), slices.Collect(maps.Keys(s.blocked)), s.schedules)
}

// SetSchedules sets the names of the pods that are started by a schedule, under other names. Their events are kept, and so are their runs
// that have finished: a schedule has limits of its own. Until the first call, all runs are kept.
func (s *Supervisor) SetSchedules(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schedules != nil && slices.Equal(s.schedules, names) {
		return
	}
	s.schedules = append([]string{}, names...)
	s.notifyLocked() // runs of others may be collected
}

// Leave stops the supervisor. The containers keep running, and the next supervisor recovers their pods. Leave returns when the state is
// saved and all goroutines have ended, or with the error of ctx.
func (s *Supervisor) Leave(ctx context.Context) error {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.cancel()
	done := make(chan struct{})
	go func() {
		s.loops.Wait()
		s.stopRecording()
		s.recording.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("shut down: %w", ctx.Err())
	}
}

// maxCollected is of how many collected pods without a file the status is kept. The oldest are deleted. A pod with a file is never deleted:
// its file would start it again.
const maxCollected = 1000

// FinishedPods limits what pods that have finished use. What a finished pod has left is removed when a limit is exceeded: sandbox,
// containers, pod-local volumes, and logs except their end. Its status and its events are kept, and the pod is not started again.
type FinishedPods struct {
	// TTL is how long they are kept, not counting the time for which the host is off; 0: without limit. It does not follow the wall clock.
	TTL time.Duration
	// Max is how many are kept, the ones that finished last; 0: without limit.
	Max int
}

// NotSupervisedError reports that a pod cannot be changed because it is not supervised.
type NotSupervisedError struct {
	Pod    string
	Why    string
	Reason lifecycle.Reason // of the pod's status
}

func (e *NotSupervisedError) Error() string {
	return fmt.Sprintf("pod %q is not supervised: %s", e.Pod, e.Why)
}

// NotSupervised is the beginning of the status message of a pod that is not supervised.
const NotSupervised = "Pod is not supervised: "

// reservedStore saves states with the space of a reserve if the disk is full.
type reservedStore struct {
	state.Store
	space *disk.Reserve
}

// Save implements [state.Store].
func (s reservedStore) Save(p state.Pod) error {
	return s.space.Do(func() error { return s.Store.Save(p) })
}

// reservedJournal stores events with the space of a reserve if the disk is full.
type reservedJournal struct {
	event.Journal
	space *disk.Reserve
}

// Append implements [event.Journal].
func (j reservedJournal) Append(events []event.Event) error {
	return j.space.Do(func() error { return j.Journal.Append(events) })
}
