package emit

import (
	"slices"
	"strings"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Rejected emits that a pod was rejected. The event has no UID, because the pod has none. There must be at least one refusal.
func Rejected(ring *event.Ring, now lifecycle.Instant, pod string, refusals []lifecycle.Refusal, by string) {
	e := event.New(event.PodRejected, now.Wall, pod, event.Fields{"error": Reasons(refusals), "hint": Hints(refusals), "by": by})
	e.Reason = string(refusals[0].Reason)
	ring.Add(e)
}

// IsReported reports whether the newest event that says whether a pod exists is that it was rejected for the same reasons, when it was
// created by the same client. The event may be of an earlier daemon.
func IsReported(ring *event.Ring, pod string, refusals []lifecycle.Refusal, by string) bool {
	events, _ := ring.Since(0)
	for i := range slices.Backward(events) {
		e := &events[i]
		if e.Pod != pod {
			continue
		}
		switch e.Kind { //nolint:exhaustive // the others do not matter
		case event.PodRejected:
			return e.Fields["error"] == Reasons(refusals) && e.Fields["by"] == by
		case event.PodAccepted, event.PodRemoved:
			return false
		}
	}
	return false
}

// Reasons returns all refusals on one line.
func Reasons(refusals []lifecycle.Refusal) string {
	texts := make([]string, len(refusals))
	for i, r := range refusals {
		texts[i] = r.Error()
	}
	return strings.Join(texts, "; ")
}

// Hints returns the different hints of all refusals on one line.
func Hints(refusals []lifecycle.Refusal) string {
	var hints []string
	for _, r := range refusals {
		if r.Hint != "" && !slices.Contains(hints, r.Hint) {
			hints = append(hints, r.Hint)
		}
	}
	return strings.Join(hints, "; ")
}
