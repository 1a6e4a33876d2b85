// Package rollout follows the generations of the pods of the pods directory: it records what they run and what becomes of it, and decides
// which earlier generation runs in place of a file whose definition failed. It does not change pods.
package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/diskcall"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/generation"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Histories stores the generations of pods. [*generation.Dir] implements it.
type Histories interface {
	Load() (histories map[string]*generation.History, problems []error, err error)
	Save(h *generation.History) error
	Delete(pod string) error
}

// Options are options of a [Tracker]. Now, Compare, Add, Log and Retry are required.
type Options struct {
	Histories Histories // nil: the generations are known until the tracker ends
	Values    Values    // nil: no config is kept
	Images    Images    // nil: no images are kept

	Now     func() lifecycle.Instant
	Compare func(from, to *spec.Pod) []change.Change
	Add     func(kind event.Kind, pod, uid string, f event.Fields)
	Log     *slog.Logger
	Retry   time.Duration // before a disk that failed is used again
}

// Tracker is the generations of all pods. It is not safe for concurrent use.
type Tracker struct {
	o         Options
	saving    *diskcall.Disk // for calls of Histories
	reading   *diskcall.Disk // for calls of Values
	keeper    *keeper
	histories map[string]*generation.History // by name of the pod; nil: not loaded yet. Values are not changed, but replaced
	unsaved   map[string]bool                // names of pods whose history has changed
	saveAgain time.Time                      // when to save after a failure; zero: now
	events    []func()                       // to be emitted when what they report is saved
}

// New returns a tracker. It knows nothing before [Tracker.Load].
func New(o Options) *Tracker {
	return &Tracker{
		o: o, saving: diskcall.New(o.Log), reading: diskcall.New(o.Log), keeper: newKeeper(o.Images, o.Log, o.Retry),
		unsaved: map[string]bool{},
	}
}

// Start starts to keep images in the background. The returned function ends that.
func (t *Tracker) Start(ctx context.Context) (end func()) { return t.keeper.start(ctx) }

// Load loads the generations, once. Until it succeeds, no file must be carried out: it may have failed before.
func (t *Tracker) Load(ctx context.Context) error {
	if t.histories != nil {
		return nil
	}
	loaded, problems := map[string]*generation.History{}, 0
	if t.o.Histories != nil {
		type result struct {
			histories map[string]*generation.History
			problems  []error
		}
		r, err := diskcall.Do(ctx, t.saving, func() (result, error) {
			histories, problems, err := t.o.Histories.Load()
			return result{histories, problems}, err
		})
		if err != nil {
			return err
		}
		for _, problem := range r.problems {
			t.o.Log.LogAttrs(ctx, slog.LevelWarn, "generations of a pod not available", slog.Any("error", problem))
		}
		loaded, problems = r.histories, len(r.problems)
	}
	now := t.o.Now()
	t.histories = loaded
	known := map[string]bool{}
	for name, h := range loaded {
		if g := h.Running(); g != nil && g.Outcome == generation.Progressing && !g.ReadyAt.IsZero() && g.ReadyAt.Boot != now.Boot {
			g.ReadyAt = lifecycle.Instant{} // an update starts again with the host
			t.unsaved[name] = true
		}
		known[name] = true
		t.keeper.keep(name, h.Images())
	}
	if problems == 0 { // otherwise there are pods whose images are not known
		t.keeper.keepOnly(known)
	}
	return nil
}

// History returns a copy of the generations of a pod; nil: there are none.
func (t *Tracker) History(pod string) *generation.History {
	if h := t.histories[pod]; h != nil {
		return h.Clone()
	}
	return nil
}

// Definitions returns the definitions of all generations that are kept, of all pods.
func (t *Tracker) Definitions() (list []*spec.Pod) {
	for _, h := range t.histories {
		for n := range h.Generations {
			if d := h.Generations[n].Definition; d != nil {
				list = append(list, d.Pod)
			}
		}
		if h.Instead != nil && h.Instead.Definition != nil {
			list = append(list, h.Instead.Definition.Pod)
		}
	}
	return list
}

// Instead returns what runs in place of the file of a pod; nil: the file is carried out. Its pointer changes with its content.
func (t *Tracker) Instead(pod string) *generation.Instead {
	if h := t.histories[pod]; h != nil {
		return h.Instead
	}
	return nil
}

// Forget removes the generations of all pods but these.
func (t *Tracker) Forget(pods map[string]bool) {
	for name := range t.histories {
		if !pods[name] {
			t.Drop(name)
		}
	}
}

// Drop removes the generations of a pod that is deleted.
func (t *Tracker) Drop(pod string) {
	if t.histories[pod] != nil {
		delete(t.histories, pod)
		t.unsaved[pod] = true
		t.keeper.keep(pod, nil)
	}
}

// put replaces a history.
func (t *Tracker) put(h *generation.History) {
	t.histories[h.Pod] = h
	t.unsaved[h.Pod] = true
	t.keeper.keep(h.Pod, h.Images())
}

// emit emits an event after the next [Tracker.Save]: after a crash before that, what it reports happens again.
func (t *Tracker) emit(kind event.Kind, pod, uid string, f event.Fields) {
	t.events = append(t.events, func() { t.o.Add(kind, pod, uid, f) })
}

// emitAll emits what waits.
func (t *Tracker) emitAll() {
	for _, emit := range t.events {
		emit()
	}
	t.events = nil
}

// Save saves what has changed. After a failure it tries again later, and returns when to call it: pods are changed nevertheless.
func (t *Tracker) Save(ctx context.Context) (again time.Time) {
	defer t.emitAll()
	now := time.Now()
	if t.o.Histories == nil || len(t.unsaved) == 0 || now.Before(t.saveAgain) {
		return t.saveAgain
	}
	t.saveAgain = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(t.unsaved)) {
		h := t.histories[name]
		_, err := diskcall.Do(context.WithoutCancel(ctx), t.saving, func() (struct{}, error) {
			if h == nil {
				return struct{}{}, t.o.Histories.Delete(name)
			}
			return struct{}{}, t.o.Histories.Save(h)
		})
		if err != nil {
			t.o.Log.LogAttrs(ctx, slog.LevelWarn, "generations of a pod not saved", slog.String("pod", name), slog.Any("error", err))
			t.saveAgain = now.Add(t.o.Retry)
			break
		}
		delete(t.unsaved, name)
	}
	return t.saveAgain
}

// NotPossibleError reports that a generation cannot run in place of a file.
type NotPossibleError struct{ Message string }

func (e *NotPossibleError) Error() string { return e.Message }

func notPossible(format string, args ...any) error {
	return &NotPossibleError{fmt.Sprintf(format, args...)}
}

// Retry carries out the file of a pod again in place of which another generation runs.
func (t *Tracker) Retry(ctx context.Context, pod, uid string) {
	h := t.histories[pod].Clone()
	t.resumes(h, uid)
	h.Retry()
	t.put(h)
	t.Save(ctx)
}

// resumes reports that a file is about to be carried out that a person had undone.
func (t *Tracker) resumes(h *generation.History, uid string) {
	if i := h.Instead; i != nil && i.By != "" {
		t.emit(event.RolloutResumed, h.Pod, uid, event.Fields{"generation": fmt.Sprint(i.Number), "by": i.By})
	}
}

// Undo makes a generation run in place of a file with a digest. Generation 0 is the last one before the running one that was ready, or the
// running one if the file waits to be carried out. The generation of a file that another one runs in place of is tried again. The error is
// a [*NotPossibleError].
func (t *Tracker) Undo(ctx context.Context, p *Pod, digest string, waits bool, to int, by string) error {
	h := t.histories[p.Name]
	if h == nil || h.Running() == nil {
		return notPossible("pod %q has no earlier generation", p.Name)
	}
	if h.Instead != nil && h.Instead.Digest == digest && to != 0 && to == h.Instead.Failed {
		t.Retry(ctx, p.Name, p.UID)
		return nil
	}
	running, target := h.Running(), h.Find(to)
	if to == 0 {
		target = h.Target(running.Number)
		if waits && running.Digest != digest {
			target = running
		}
	}
	switch {
	case target == nil && to == 0:
		return notPossible("pod %q has no earlier generation that was ready", p.Name)
	case target == nil:
		return notPossible("pod %q has no generation %d", p.Name, to)
	case target == running && !waits:
		return notPossible("generation %d of pod %q runs already", target.Number, p.Name)
	case target.Definition == nil:
		return notPossible("generation %d of pod %q is not kept any more", target.Number, p.Name)
	}
	i := generation.Instead{
		Digest: digest, Number: target.Number, Why: "requested by " + by, By: by, At: t.o.Now(), Definition: t.pinned(ctx, target.Definition),
	}
	if newest := h.Newest(); newest.Digest == digest {
		i.Failed = newest.Number
	}
	h = h.Clone()
	h.Return(i)
	t.put(h)
	t.emit(event.RolloutUndone, p.Name, p.UID, event.Fields{"generation": fmt.Sprint(i.Number), "by": by})
	t.Save(ctx)
	return nil
}

// Pod is a pod of the pods directory.
type Pod struct {
	Name, UID string
	Snapshot  *supervisor.Snapshot
	// Definition is what it runs, without ephemeral containers.
	Definition *spec.Pod
	Stopped    bool // by a person
}
