package emit

import (
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestResizeStarted: the start of a resize is emitted once, also if the daemon restarts meanwhile, and again for the next request.
func TestResizeStarted(t *testing.T) {
	now := lifecycle.Instant{Boot: "b", Mono: 1}
	var facts lifecycle.Facts
	ring := event.NewRing(10)
	emitter := New(&spec.Pod{Name: "p"}, "uid", ring, nil)
	for i, step := range []struct {
		n      int
		ends   lifecycle.Event
		events int
	}{
		{1, lifecycle.ResizeInterrupted{}, 1},
		{1, lifecycle.ResizeInterrupted{}, 1},
		{1, lifecycle.ActionFailed{Action: lifecycle.ResizePod{N: 1}, Failure: lifecycle.Failure{Message: "no"}, At: now}, 1},
		{1, lifecycle.PodResized{N: 1, At: now}, 1},
		{2, lifecycle.ResizeInterrupted{}, 2},
		{2, lifecycle.PodResized{N: 2, At: now}, 2},
	} {
		facts.Resize.N = step.n
		a := lifecycle.ResizePod{N: step.n}
		emitter.At(&facts, now).Action(a)
		facts.Fold(lifecycle.Issued{Action: a, At: now})
		facts.Fold(step.ends)
		events, _ := ring.Since(0)
		if len(events) != step.events || events[0].Kind != api.EventResizeStarted {
			t.Fatalf("after step %d: %v", i, events)
		}
	}
}
