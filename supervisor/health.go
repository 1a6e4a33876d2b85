package supervisor

import (
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// health is the state of what the supervision of a pod depends on: the disk, the container engine, the shim, and the
// sources of its volumes.
type health struct {
	writeErr     error  // of the newest write of the state
	removalErr   error  // of the newest attempt to remove the sandbox or the pod
	unresponsive bool   // the shim does not respond
	stale        string // why the volumes are not updated; empty: they are
}

// written remembers the result of the newest write. It reports a change between success and failure.
func (h *health) written(err error) (kind event.Kind, f event.Fields, changed bool) {
	switch {
	case err != nil && h.writeErr == nil:
		kind, f, changed = event.StateNotDurable, event.Fields{"error": err.Error()}, true
	case err == nil && h.writeErr != nil:
		kind, changed = event.StateDurable, true
	}
	h.writeErr = err
	return kind, f, changed
}

// removed remembers the result of an attempt to remove the sandbox or the pod.
func (h *health) removed(a lifecycle.Action, err error) {
	switch a.(type) {
	case lifecycle.RemoveSandbox, lifecycle.RemovePod, lifecycle.CollectPod:
		h.removalErr = err
	case lifecycle.StartSandbox: // the pod runs again
		h.removalErr = nil
	}
}

// shim remembers whether the shim responds. It reports a change. A shim that has exited is neither. It is not saved: the next
// supervisor finds out.
func (h *health) shim(m shimChanged) (kind event.Kind, changed bool) {
	was := h.unresponsive
	h.unresponsive = !m.responds && !m.exited
	switch {
	case h.unresponsive && !was:
		return event.ShimUnresponsive, true
	case m.responds && was:
		return event.ShimResponding, true
	}
	return "", false
}

// restore remembers what an earlier supervisor has reported, so that it is not reported again.
func (h *health) restore(list []lifecycle.Condition) {
	for i := range list {
		if list[i].Type == VolumesNotUpdated {
			h.stale = list[i].Message
		}
	}
}

// volumes remembers why the volumes are not updated. It reports a change between that and up to date, not one of the reason: one cause may
// have several messages in turn.
func (h *health) volumes(stale string) (kind event.Kind, f event.Fields, changed bool) {
	was := h.stale
	h.stale = stale
	switch {
	case stale != "" && was == "":
		return event.VolumesNotUpdated, event.Fields{"error": stale}, true
	case stale == "" && was != "":
		return event.VolumesUpdated, nil, true
	}
	return "", nil, false
}

// conditions returns the conditions that are present only while they are true.
func (h *health) conditions() []lifecycle.Condition {
	var list []lifecycle.Condition
	if h.writeErr != nil {
		list = append(list, notDurable(h.writeErr))
	}
	if h.removalErr != nil {
		list = append(list, notRemoved(h.removalErr))
	}
	if h.unresponsive {
		list = append(list, unresponsive())
	}
	if h.stale != "" {
		list = append(list, notUpdated(h.stale))
	}
	return list
}
