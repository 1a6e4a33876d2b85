package podfiles

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// fakePods is a set of pods without containers. The deletion of a pod completes at once, unless it is in slow.
type fakePods struct {
	mu      sync.Mutex
	pods    map[string]*supervisor.Snapshot
	changed chan struct{}
	n       int
	booted  time.Time
	log     []string                    // of all changes
	stage   func(context.Context) error // called by Stage; nil: it succeeds
	admit   func(pod *spec.Pod) error   // called by AddStaged; nil: it succeeds
	slow    map[string]bool
	compare func(from, to *spec.Pod) []change.Change
	becomes map[string]string            // "ready", "crash" or "fail" by image; empty: the pod runs and is not ready
	staged  []supervisor.Staged          // of all changes
	cut     func(before bool) error      // called before and after each change; an error ends the change
	kept    map[string][]lifecycle.Image // by pod

	newest     string // ID of the image that names refer to; empty: the one that runs
	unreadable error  // of an image archive
}

// KeepImages implements [Images].
func (f *fakePods) KeepImages(_ context.Context, pod string, images []lifecycle.Image) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.kept, pod)
	if len(images) > 0 {
		f.kept[pod] = images
	}
	return nil
}

// KeptImages implements [Images].
func (f *fakePods) KeptImages(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.kept)), nil
}

// cutOff reports whether a change is cut off before or after it was made.
func (f *fakePods) cutOff(before bool) error {
	if f.cut == nil {
		return nil
	}
	return f.cut(before)
}

// runs sets the status of a pod that runs a definition since now, with the images that were staged, and what becomes of it. f.mu must be
// held.
func (f *fakePods) runs(s *supervisor.Snapshot, staged supervisor.Staged) {
	now := lifecycle.Instant{Boot: "b", Mono: time.Since(f.booted), Wall: time.Now()}
	image := s.Pod.Containers[0].Image
	a := lifecycle.Attempt{Ref: lifecycle.Ref{Container: "app", Attempt: 1}, Requested: now, Started: now}
	s.Status, s.AtRest = lifecycle.Status{Phase: lifecycle.PhaseRunning}, false
	within, minReady, _ := s.Pod.UpdateRule()
	trial := lifecycle.NewTrial(within, minReady, staged.RollsBack, now)
	s.Outcome = lifecycle.Outcome{State: lifecycle.OutcomeProgressing}
	failed := func(why string) lifecycle.Outcome {
		trial.Failed, trial.Message = now, why
		return lifecycle.Outcome{State: lifecycle.OutcomeFailed, Message: why}
	}
	used, ok := staged.Images[s.Pod.Containers[0].Name]
	if !ok {
		used = lifecycle.Image{ID: "id-" + image}
	}
	switch cmp.Or(f.becomes[used.ID], f.becomes[image]) {
	case "ready":
		s.Outcome.State = lifecycle.OutcomeReady
		if minReady == 0 {
			s.Outcome.State = lifecycle.OutcomeComplete
		}
		f.later(s, minReady, lifecycle.OutcomeComplete, "")
	case "crash":
		a.Exited, a.Exit = now, lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError}
		s.Outcome = failed(`container "app" exited with code 3`)
	case "fail":
		s.Status.Phase, s.AtRest = lifecycle.PhaseFailed, true
		s.Outcome = failed("the pod failed")
	default:
		f.later(s, within, lifecycle.OutcomeFailed,
			fmt.Sprintf("the pod was not ready within %v: containers with unready status: [app]", within))
	}
	s.Facts.Trial = trial
	if s.Facts.Accepted.IsZero() {
		s.Facts.Accepted = now
	}
	s.Facts.Containers = map[string]*lifecycle.Container{s.Pod.Containers[0].Name: {Newest: a, Image: used}}
}

// later changes what became of a pod after a time, unless it has another definition or outcome by then. f.mu must be held.
func (f *fakePods) later(s *supervisor.Snapshot, after time.Duration, state lifecycle.OutcomeState, message string) {
	if after == 0 {
		return
	}
	name, before, pod := s.Pod.Name, s.Outcome, s.Pod
	time.AfterFunc(after, func() {
		f.set(func(f *fakePods) {
			if now := f.pods[name]; now != nil && now.Pod == pod && now.Outcome == before {
				next := *now
				next.Outcome = lifecycle.Outcome{State: state, Message: message}
				f.pods[name] = &next
			}
		})
	})
}

// Keep implements [Pods].
func (f *fakePods) Keep(_ context.Context, name, uid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.pods[name]
	if s == nil || s.Facts.UID != uid {
		return supervisor.ErrNotFound
	}
	next := *s
	next.Facts.Trial.RollsBack = false
	f.pods[name] = &next
	f.record("keep %s", name)
	return nil
}

func newFakePods() *fakePods {
	return &fakePods{
		pods: map[string]*supervisor.Snapshot{}, changed: make(chan struct{}), slow: map[string]bool{}, compare: replaceAlways,
		booted:  time.Now().Add(-time.Hour),
		becomes: map[string]string{}, kept: map[string][]lifecycle.Image{},
	}
}

func (f *fakePods) Now() lifecycle.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return lifecycle.Instant{Boot: "b", Mono: time.Since(f.booted), Wall: time.Now()}
}

func (f *fakePods) Pods() []supervisor.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []supervisor.Snapshot
	for _, name := range slices.Sorted(maps.Keys(f.pods)) {
		list = append(list, *f.pods[name])
	}
	return list
}

func (f *fakePods) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// record logs a change. f.mu must be held.
func (f *fakePods) record(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf(format, args...))
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakePods) NewerImages(_ context.Context, pod *spec.Pod) (map[string]lifecycle.Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newer := map[string]lifecycle.Image{}
	if s := f.pods[pod.Name]; s != nil && f.newest != "" {
		for name, c := range s.Facts.Containers {
			if c.Image.ID != f.newest {
				newer[name] = lifecycle.Image{ID: f.newest, Archive: true}
			}
		}
	}
	return newer, f.unreadable
}

func (f *fakePods) Stage(
	ctx context.Context, pod *spec.Pod, newer map[string]lifecycle.Image, progress func(string, lifecycle.Progress),
) (supervisor.Staged, error) {
	progress(pod.Containers[0].Name, lifecycle.Progress{Done: 1, Total: 2})
	f.mu.Lock()
	stage := f.stage
	f.mu.Unlock()
	if stage != nil {
		return supervisor.Staged{}, stage(ctx)
	}
	return supervisor.Staged{Images: newer}, nil
}

func (f *fakePods) AddStaged(pod *spec.Pod, owner state.Owner, staged supervisor.Staged) (supervisor.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.cutOff(true); err != nil {
		return supervisor.Snapshot{}, err
	}
	if f.pods[pod.Name] != nil {
		return supervisor.Snapshot{}, &supervisor.NameTakenError{Name: pod.Name, Holder: "by a test"}
	}
	if f.admit != nil {
		if err := f.admit(pod); err != nil {
			f.record("refuse %s", pod.Name)
			return supervisor.Snapshot{}, err
		}
	}
	f.n++
	s := &supervisor.Snapshot{Pod: pod, Owner: owner, Facts: lifecycle.Facts{UID: fmt.Sprintf("uid-%d", f.n)}}
	f.runs(s, staged)
	f.staged = append(f.staged, staged)
	f.pods[pod.Name] = s
	f.record("add %s %s", pod.Name, pod.Containers[0].Image)
	return *s, f.cutOff(false)
}

func (f *fakePods) Redefine(
	_ context.Context, uid string, pod *spec.Pod, staged supervisor.Staged, owner state.Owner,
) ([]change.Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.cutOff(true); err != nil {
		return nil, err
	}
	s := f.pods[pod.Name]
	if s == nil || s.Facts.UID != uid {
		return nil, supervisor.ErrNotFound
	}
	changes := f.compare(s.Pod, pod)
	if change.Largest(changes) == change.ReplacePod {
		return nil, &supervisor.ReplaceError{Pod: pod.Name, Changes: changes}
	}
	next := *s
	next.Pod, next.Owner = pod, owner
	f.runs(&next, staged)
	f.staged = append(f.staged, staged)
	f.pods[pod.Name] = &next
	f.record("redefine %s %s", pod.Name, pod.Containers[0].Image)
	return changes, f.cutOff(false)
}

func (f *fakePods) Stop(_ context.Context, name string, o supervisor.StopOptions) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.cutOff(true); err != nil {
		return err
	}
	s := f.pods[name]
	if s == nil || o.UID != "" && s.Facts.UID != o.UID {
		return supervisor.ErrNotFound
	}
	next := *s
	next.Facts.Stop = lifecycle.Stop{Requested: lifecycle.Instant{Boot: "b", Mono: 1}, Delete: o.Delete, ByUser: true}
	f.pods[name] = &next
	if o.Delete && !f.slow[name] {
		delete(f.pods, name)
	}
	f.record("stop %s delete=%v", name, o.Delete)
	return f.cutOff(false)
}

// deleted completes the deletion of a slow pod.
func (f *fakePods) deleted(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, name)
	f.record("deleted %s", name)
}

// images returns the image of the first container of each pod.
func (f *fakePods) images() map[string]string {
	images := map[string]string{}
	for _, p := range f.Pods() {
		images[p.Pod.Name] = p.Pod.Containers[0].Image
	}
	return images
}

func (f *fakePods) history() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func (f *fakePods) set(change func(*fakePods)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
	close(f.changed)
	f.changed = make(chan struct{})
}
