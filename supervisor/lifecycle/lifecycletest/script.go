package lifecycletest

import (
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Script is the behaviour of the engine. Each list is consumed from the front; when it is empty everything succeeds.
type Script struct {
	Sandboxes []Start
	Pulls     map[string][]Start // by container
	Runs      map[string][]Run   // by container
}

// Start is the start of something. It takes a while and may fail.
type Start struct {
	Takes   time.Duration
	Failure *lifecycle.Failure
}

// Run is one run of a container. The zero Run starts at once and exits at once with code 0.
type Run struct {
	Start
	Lasts        time.Duration
	Forever      bool // it exits only after a signal
	Exit         lifecycle.Exit
	IgnoresStop  bool          // it ignores the stop signal
	StopTakes    time.Duration // from the stop signal to its exit
	IgnoresKills int           // number of SIGKILLs that have no effect

	PostStart, PreStop Start // of its hooks
	// Probes are the results of its probes, in order.
	Probes map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome
}

// next removes and returns the first element of a list, or returns fallback if the list is empty.
func next[T any](list *[]T, fallback T) T {
	if len(*list) == 0 {
		return fallback
	}
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

// run returns the next run of a container. After the end of the script, init containers succeed and the others run until they
// are stopped.
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

// pull returns the next pull of a container's image.
func (w *World) pull(container string) Start {
	list := w.Script.Pulls[container]
	s := next(&list, Start{})
	if w.Script.Pulls != nil {
		w.Script.Pulls[container] = list
	}
	return s
}
