package lifecycletest

import (
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Script says how the engine fares. Each list is used up from the front; what comes after its end is what goes well.
type Script struct {
	Sandboxes []Start
	Pulls     map[string][]Start // by container
	Runs      map[string][]Run   // by container
}

// Start is how something comes up: after a time, and perhaps not at all.
type Start struct {
	Takes   time.Duration
	Failure *lifecycle.Failure
}

// Run is how one run of a container goes. The zero Run starts at once and ends at once, with 0.
type Run struct {
	Start
	Lasts        time.Duration
	Forever      bool // it ends only by a signal
	Exit         lifecycle.Exit
	IgnoresStop  bool          // it does not hear the stop signal
	StopTakes    time.Duration // from the stop signal to its end
	IgnoresKills int           // how many SIGKILLs it outlives

	PostStart, PreStop Start // how its hooks go
	// Probes are the answers of its probes, one after another.
	Probes map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome
}

// next takes the first element off a list; of an empty list it is the one to fall back to.
func next[T any](list *[]T, fallback T) T {
	if len(*list) == 0 {
		return fallback
	}
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

// run takes the next run of a container. When the script is used up, init containers end well and the others run on.
func (w *World) run(container string) Run {
	fallback := Run{Forever: true}
	for i := range w.Pod.InitContainers {
		if c := &w.Pod.InitContainers[i]; c.Name == container && !c.IsSidecar() {
			fallback = Run{Lasts: time.Second}
		}
	}
	list := w.Script.Runs[container]
	r := next(&list, fallback)
	if w.Script.Runs != nil {
		w.Script.Runs[container] = list
	}
	if r.Exit.Reason == "" {
		r.Exit.Reason = lifecycle.ReasonCompleted
		if r.Exit.Code != 0 {
			r.Exit.Reason = lifecycle.ReasonError
		}
	}
	return r
}

// pull takes the next pull of a container's image.
func (w *World) pull(container string) Start {
	list := w.Script.Pulls[container]
	s := next(&list, Start{})
	if w.Script.Pulls != nil {
		w.Script.Pulls[container] = list
	}
	return s
}
