package emit

import (
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Rejected emits that a pod was rejected, which a client, or a file in the pods directory, was to create. The event has no UID, because the
// pod has none. There must be at least one refusal.
func Rejected(ring *event.Ring, now lifecycle.Instant, pod string, refusals []lifecycle.Refusal, by, file string) {
	e := event.New(api.EventPodRejected, now.Wall, pod, event.Fields{
		"error": Reasons(refusals), "hint": Hints(refusals), "by": by, "file": file,
	})
	e.Reason = string(refusals[0].Reason)
	ring.Add(e)
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
