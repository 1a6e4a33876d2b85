package wait

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
)

// Pods is a wait for pods.
type Pods struct {
	For *Condition
	// Names are the names of the pods; empty: the pods for which Selected reports true when the wait starts.
	Names    []string
	Selected func(*api.Pod) bool
	// Met is called with each pod that meets the condition, as it was last seen. The error ends the wait.
	Met func(pod *api.Pod) error
}

// Outcome is what became of a wait.
type Outcome struct {
	// Missing are the names of pods that did not exist when the wait started. A wait for their creation or deletion has none.
	Missing []string
	// Unmet are the names of pods that do not meet the condition. They are those of the wait if the daemon did not list the pods in time.
	Unmet []string
	// Settling are those of Unmet that are to become ready, and are [Settling].
	Settling []string
	// Stopped are those of Unmet that a person has stopped: they become ready after a start only.
	Stopped []string
	// None reports that no pod was selected.
	None bool
	// Listed reports that the daemon listed the pods in time.
	Listed bool
	// Errors are the errors of pods that cannot meet the condition.
	Errors []error
}

// Until waits until all pods meet the condition or ctx ends, also over restarts of the daemon. As in kubectl, the pod of a name may be
// deleted and created again in the meantime, except in a wait for its deletion.
func (w *Pods) Until(ctx context.Context, d Daemon) (Outcome, error) {
	r := w.start()
	err := Until(ctx, d, r.watch)
	if err != nil && ctx.Err() != nil { // the end of the context is a result, other errors are not
		err = nil
	}
	return r.outcome(), errors.Join(err, r.err)
}

// Check checks the condition without waiting. The pods are all pods that exist.
func (w *Pods) Check(pods []api.Pod) (Outcome, error) {
	r := w.start()
	changed := r.watch()
	for _, p := range pods {
		changed(&api.PodChange{Type: api.Added, Object: p})
	}
	changed(&api.PodChange{Type: api.Listed})
	return r.outcome(), r.err
}

// run is a wait in progress.
type run struct {
	*Pods
	err  error             // of Met
	open map[string]target // pods that do not meet the condition yet, by name
	done map[string]bool   // names of the others
	Outcome
}

// target is a pod that a wait is for.
type target struct {
	first *api.Pod // as it was first seen
	last  api.Pod  // as it was last seen
}

func (t *target) seen() bool { return t.first != nil }

func (w *Pods) start() *run {
	r := &run{Pods: w, open: map[string]target{}, done: map[string]bool{}}
	for _, name := range w.Names {
		r.open[name] = target{}
	}
	return r
}

// watch returns a function that evaluates the changes of a watch, and reports whether the wait is done.
func (r *run) watch() func(*api.PodChange) bool {
	present := map[string]bool{} // UIDs
	return func(c *api.PodChange) bool {
		name, uid := c.Object.Metadata.Name, c.Object.Metadata.UID
		switch t, open := r.open[name]; {
		case c.Type == api.Listed:
			r.list(present)
		case c.Type != api.Deleted:
			present[uid] = true
			r.see(&c.Object)
		case open && r.For.Kind == ForDeleted && t.seen() && t.first.Metadata.UID == uid:
			r.meet(name, &c.Object)
		}
		return r.err != nil || r.Listed && len(r.open) == 0 && !r.awaitsAny()
	}
}

// awaitsAny reports whether the wait is for the creation of the first pod that is selected.
func (r *run) awaitsAny() bool {
	return r.For.Kind == ForCreated && len(r.Names) == 0 && len(r.done) == 0
}

// list evaluates a complete list of pods. The argument has the UIDs of those that exist.
func (r *run) list(present map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(r.open)) {
		t := r.open[name]
		switch {
		case r.For.Kind == ForDeleted && t.seen() && !present[t.first.Metadata.UID]: // deleted while the daemon was not watched
			r.meet(name, &t.last)
		case !t.seen() && r.For.Kind != ForCreated:
			delete(r.open, name)
			if r.For.Kind == ForState {
				r.Missing = append(r.Missing, name)
			}
		}
	}
	r.Listed = true
}

// see evaluates the state of a pod.
func (r *run) see(p *api.Pod) {
	name := p.Metadata.Name
	file := p.Metadata.UID == "" && p.Status.Phase == api.PhaseFailed // of the pods directory, which is refused: no pod exists
	if file && r.For.Kind != ForState {
		return
	}
	if len(r.Names) == 0 && (!r.Listed || r.awaitsAny()) && !r.done[name] && !file && r.Selected(p) {
		r.open[name] = target{}
	}
	t, open := r.open[name]
	if !open {
		return
	}
	if !t.seen() {
		t.first = p
	}
	t.last = *p
	r.open[name] = t
	met, err := r.For.Kind == ForCreated, error(nil)
	switch r.For.Kind {
	case ForState:
		if met, err = r.For.met(p); err == nil && r.For.ready { // a generation that a person has requested will be ready
			err = reverted(t.first, p, api.ReasonRolledBack)
			if err != nil && strings.Contains(err.Error(), ", requested by ") { // as a daemon of an earlier version reports such a one
				err = nil
			}
		}
	case ForDeleted:
		if problem, ok := Remains(p); ok {
			err = fmt.Errorf("its containers are stopped, but it could not be removed: %s", problem)
		}
	case ForCreated:
	}
	switch {
	case err != nil:
		delete(r.open, name)
		r.done[name] = true
		r.Errors = append(r.Errors, fmt.Errorf("pod %q: %w", name, err))
	case met:
		r.meet(name, p)
	}
}

// meet ends the wait for a pod that meets the condition.
func (r *run) meet(name string, p *api.Pod) {
	delete(r.open, name)
	r.done[name] = true
	r.err = errors.Join(r.err, r.Met(p))
}

func (r *run) outcome() Outcome {
	r.Unmet = slices.Sorted(maps.Keys(r.open))
	for _, name := range r.Unmet {
		switch t := r.open[name]; {
		case !r.For.ready:
		case Settling(&t.last):
			r.Settling = append(r.Settling, name)
		case !t.last.Status.StoppedAt.IsZero():
			r.Stopped = append(r.Stopped, name)
		}
	}
	r.None = len(r.Names)+len(r.open)+len(r.done) == 0
	return r.Outcome
}
