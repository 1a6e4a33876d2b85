// Package podfiles runs the pods of the pods directory, and follows changes of its files. It decides which definition each of these pods is
// to run, and by which step it gets there: see facts.plan, which is a pure function of what was found. Whatever was interrupted, the next
// decision continues. It changes pods that follow a file, the pod files that clients apply or remove, and the generations of the pods. It
// does not supervise pods, and it never writes a file without a client, nor changes a pod that a client has created.
package podfiles

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
	"github.com/podstead/podstead/supervisor/state"
)

// File is a file of the pods directory.
type File struct {
	Path string
	// Pod is the name of the pod. If the definition cannot be read, it is that of the pod that follows the file, or else that of the file.
	Pod string
	// Problems are the errors and warnings of the newest content.
	Problems spec.Problems
	// Refused is why the newest content is not what runs, other than its problems: a name that another file or a pod of podstead run
	// has, admission, or what an update waits for.
	Refused error
	// Reason is a reason of [api.FileAccepted] for content that is not what runs; empty: it is accepted, and waits if Refused is not nil.
	Reason api.Reason
	// Preparing reports that Refused is an update that has begun, and neither pulls an image nor stops the pod.
	Preparing bool
	// SpecHash is the hash of the definition, see [spec.Pod]; empty: the content is invalid.
	SpecHash string
	// Definition is the definition; nil: the content is invalid. It must not be changed.
	Definition *spec.Pod
	// Next is when a pod that was rejected is added again, unless other pods change before; zero: it was not rejected.
	Next time.Time
}

// Plan is what applying a file does, or would do.
type Plan struct {
	Pod     string
	File    string // in the pods directory
	Outcome api.Outcome
	Changes []change.Change
	// Replaced are the other files of the pod, which are removed.
	Replaced []string
	// Instead is why the file is not carried out although it is applied: its definition was rolled back. Empty: it is carried out.
	Instead string
	// Undone is the generation, and the person who requested it, that runs until this file is carried out; empty: none.
	Undone string
	// SpecHash is the hash of the definition that the pod has if it is unchanged, or else gets.
	SpecHash string
}

// Pods is the set of pods of a host. [*supervisor.Supervisor] implements it.
type Pods interface {
	Now() lifecycle.Instant
	Pods() []supervisor.Snapshot
	Changed() <-chan struct{}
	NewerImages(ctx context.Context, pod *spec.Pod) (map[string]lifecycle.Image, error)
	Stage(
		ctx context.Context, pod *spec.Pod, newer map[string]lifecycle.Image, progress func(container string, p lifecycle.Progress),
	) (supervisor.Staged, error)
	AddStaged(pod *spec.Pod, owner state.Owner, staged supervisor.Staged) (supervisor.Snapshot, error)
	Redefine(ctx context.Context, uid string, pod *spec.Pod, staged supervisor.Staged, owner state.Owner) ([]change.Change, error)
	Stop(ctx context.Context, name string, o supervisor.StopOptions) error
	Keep(ctx context.Context, name, uid string) error
}

// Options are options of a [Set].
type Options struct {
	Events *event.Ring  // nil: no events are emitted
	Log    *slog.Logger // nil: discarded
	// Histories stores the generations of the pods; nil: they are known until the set ends.
	Histories Histories
	// Values are the config maps and secrets of the host, which are kept for a rollback; nil: there are none.
	Values Values
	// MaxReplicas is the maximum number of pods of one object of a manifest; 0: the default.
	MaxReplicas int
	// Scheduled is whether a file of the directory had a schedule when the daemon before ended.
	Scheduled bool
	// Images keeps the images of earlier generations; nil: they are not kept.
	Images Images

	times   *times                                   // nil: those of production
	compare func(from, to *spec.Pod) []change.Change // nil: change.Between
	accept  func(path string, text []byte) *content  // nil: acceptWith
}

// times are the intervals of a set, which tests shorten.
type times struct {
	// quiet is how long nothing must change before the directory is listed, burst how long that waits at most. A file that changed within
	// quiet is not read yet: it may be half-written.
	quiet, burst time.Duration
	// halfWritten is the age of a change from which on an invalid file is reported.
	halfWritten time.Duration
	// removal is how long a file must be missing before its pod is deleted. Editors rename the old file, and then write the new one.
	removal time.Duration
	// relist is the time between two listings without a notification, unnotified that without inotify.
	relist, unnotified time.Duration
	// settle is how long a directory that was lost must not change before missing files count as removed.
	settle time.Duration
	// retry is the delay after the first failure of a step. It doubles up to maxRetry.
	retry, maxRetry time.Duration
}

var production = times{
	quiet: 150 * time.Millisecond, burst: time.Second, halfWritten: 2 * time.Second, removal: time.Second, relist: time.Minute,
	unnotified: 5 * time.Second,
	settle:     10 * time.Second, retry: 10 * time.Second, maxRetry: 5 * time.Minute,
}

// Set is the pods directory with its pods. It is safe for concurrent use.
type Set struct {
	dir  string
	pods Pods
	// maxReplicas is that of the options.
	maxReplicas int
	events      *event.Ring
	log         *slog.Logger
	times       times
	accept      func(path string, text []byte) *content
	kick        chan struct{} // has a value if the directory must be compared with the pods now

	// turn is held for a comparison, and while the set itself writes files. It protects everything up to mu.
	turn       lock
	disk       *disk.Caller            // for listings, and for what the set writes
	references map[string]*disk.Caller // for what a pod file refers to, by its path
	listed     *watch.Dir
	facts      facts
	compared   map[string]comparison
	workers    map[string]*worker // by name of the pod
	running    sync.WaitGroup     // the workers, and the calls of keep
	first      chan struct{}      // closed when the first listing was carried out

	generations *generations

	mu    sync.Mutex
	files []File
	names map[string]bool // of the pods that files define or may define; nil: there may be others
	// suspended is that of the facts.
	suspended time.Time
	changed   chan struct{}

	// Of the goroutine of Run.
	notifying *disk.Caller // for what the notifier does
	armError  string       // logged last
}

// New returns the set of a directory, which need not exist.
func New(dir string, pods Pods, o Options) *Set {
	s := &Set{
		dir: filepath.Clean(dir), pods: pods, events: o.Events, log: o.Log, times: production, kick: make(chan struct{}, 1),
		compared: map[string]comparison{}, workers: map[string]*worker{},
		changed: make(chan struct{}), turn: make(lock, 1), first: make(chan struct{}), references: map[string]*disk.Caller{},
		accept: o.accept, maxReplicas: o.MaxReplicas,
	}
	if o.times != nil {
		s.times = *o.times
	}
	if s.accept == nil {
		s.accept = func(path string, text []byte) *content { return acceptWith(options(path, s.maxReplicas), path, text) }
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.events == nil {
		s.events = event.NewRing(1)
	}
	s.disk, s.notifying = disk.NewCaller(s.log), disk.NewCaller(s.log)
	s.listed = watch.NewDir(s.dir)
	s.generations = newGenerations(&o, s.log, s.times.retry)
	s.facts = newFacts(s.dir, s.times)
	s.facts.scheduled = o.Scheduled
	s.facts.compare, s.facts.between = o.compare, s.between
	if o.compare == nil {
		s.facts.compare = change.Between
	}
	return s
}

// Files returns the files of the directory, sorted by path. It does not wait for a disk.
func (s *Set) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files
}

// Known returns the names of the pods that exist, and of those that files define; complete is false if files may define others.
func (s *Set) Known() (names map[string]bool, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names, s.names != nil
}

// Changed returns a channel that is closed when the result of [Set.Files] changes after the call.
func (s *Set) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// suspension is how long [Set.Suspend] holds, if the daemon does not end.
const suspension = 15 * time.Minute

// Suspend ends what is being carried out, and carries nothing out until the suspension expires: a client deletes the pods and then stops
// the daemon. The files are kept. It returns when no pod is being changed.
func (s *Set) Suspend() {
	s.turn.Lock()
	s.facts.suspended = time.Now().Add(suspension)
	s.mu.Lock()
	s.suspended = s.facts.suspended
	s.mu.Unlock()
	for _, w := range s.workers {
		w.cancel()
	}
	s.turn.Unlock()
	s.running.Wait()
}

// Suspended reports whether nothing is carried out, see [Set.Suspend].
func (s *Set) Suspended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.suspended)
}

// comparison is the result of comparing a definition with another one.
type comparison struct {
	from, to *spec.Pod
	changes  []change.Change
}

// between compares what a pod runs with a content. It remembers the result: pods change their status far more often than their definition.
func (s *Set) between(p *pod, c *content) []change.Change {
	last := s.compared[p.name]
	if last.from != p.definition || last.to != c.pod {
		last = comparison{p.definition, c.pod, s.facts.compare(p.own(), c.pod)}
		s.compared[p.name] = last
	}
	return last.changes
}

// wake compares the directory with the pods soon.
func (s *Set) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
