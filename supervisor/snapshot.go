package supervisor

import (
	"errors"
	"maps"
	"reflect"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// StateNotDurable is a condition that is present, and True, while the newest state of a pod is not on the disk although it should be.
const StateNotDurable lifecycle.ConditionType = "StateNotDurable"

// notDurable returns the condition [StateNotDurable] for the error of the newest write.
func notDurable(err error) lifecycle.Condition {
	c := lifecycle.Condition{Type: StateNotDurable, Status: "True", Reason: "WriteFailed", Message: err.Error()}
	if errors.Is(err, state.ErrTimeout) {
		c.Reason = "WriteTimeout"
	}
	return c
}

// RemovalFailed is a condition that is present, and True, while the sandbox of a pod, or what a deleted pod has left, could not be removed.
// The removal is repeated.
const RemovalFailed lifecycle.ConditionType = "RemovalFailed"

// oneLine returns the text of an error, in which joined errors are not on lines of their own.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// notRemoved returns the condition [RemovalFailed] for the error of the newest attempt.
func notRemoved(err error) lifecycle.Condition {
	return lifecycle.Condition{Type: RemovalFailed, Status: "True", Reason: "RemoveFailed", Message: oneLine(err)}
}

// MonitorUnresponsive is a condition that is present, and True, while the monitor of the containers of a pod, or the shim of the pod, does
// not respond. The containers keep running, but they are not supervised.
const MonitorUnresponsive lifecycle.ConditionType = "MonitorUnresponsive"

// unresponsive returns the condition [MonitorUnresponsive].
func unresponsive() lifecycle.Condition {
	return lifecycle.Condition{
		Type: MonitorUnresponsive, Status: "True", Reason: "MonitorTimeout",
		Message: "The monitor of the containers does not respond, they keep running without supervision",
	}
}

// VolumesNotUpdated is a condition that is present, and True, while volumes of a pod cannot be updated from their config maps and secrets.
// Its containers keep the last content.
const VolumesNotUpdated lifecycle.ConditionType = "VolumesNotUpdated"

// notUpdated returns the condition [VolumesNotUpdated].
func notUpdated(why string) lifecycle.Condition {
	return lifecycle.Condition{Type: VolumesNotUpdated, Status: "True", Reason: lifecycle.ReasonFailedMount, Message: why}
}

// Snapshot is a pod at one moment. It is immutable.
type Snapshot struct {
	Pod        *spec.Pod // with ephemeral containers
	Owner      state.Owner
	Facts      lifecycle.Facts
	Status     lifecycle.Status
	Pulling    map[string]lifecycle.Progress // by container; only images that are being pulled, imported or unpacked
	AtRest     bool                          // the phase is terminal and nothing of the pod runs
	NotDurable bool                          // the newest state could not be saved
	Outcome    lifecycle.Outcome             // of the newest request; zero: the pod is not supervised
}

// Undefined reports that the definition of the pod is not known: its state file cannot be used, and no container has the definition.
func (s *Snapshot) Undefined() bool { return len(s.Pod.Containers) == 0 }

// condition returns a condition of the status; it is zero if there is none of the type.
func (s *Snapshot) condition(t lifecycle.ConditionType) (found lifecycle.Condition) {
	for _, c := range s.Status.Conditions {
		if c.Type == t {
			found = c
		}
	}
	return found
}

// Stopped reports that a user has stopped the pod, before its work was finished.
func (s *Snapshot) Stopped() bool {
	stop := &s.Facts.Stop
	if !stop.ByUser || stop.Delete || stop.Reason != "" || !s.Status.Phase.Terminal() {
		return false
	}
	end := lifecycle.WorkFinishedAt(s.Pod, &s.Facts)
	return end.IsZero() || !end.Before(stop.Requested)
}

// Settled reports that no container runs and none will be started. Of a pod whose state cannot be saved, what it leaves may remain: it may
// not be removable either.
func (s *Snapshot) Settled() bool { return s.AtRest || s.NotDurable && s.Status.Phase.Terminal() }

// same reports whether two snapshots of a pod look the same to clients.
func (s *Snapshot) same(other *Snapshot) bool {
	return s.Pod == other.Pod && s.Outcome == other.Outcome && s.Facts.Trial == other.Facts.Trial &&
		s.Facts.Restart == other.Facts.Restart && s.Owner == other.Owner && s.AtRest == other.AtRest && s.NotDurable == other.NotDurable &&
		s.Facts.Stop == other.Facts.Stop && s.Facts.Job == other.Facts.Job && s.Facts.Collection == other.Facts.Collection &&
		maps.Equal(s.Pulling, other.Pulling) && reflect.DeepEqual(s.Status, other.Status)
}

// health is the state of what the supervision of a pod depends on: the disk, the container engine, the shim, and the
// sources of its volumes.
type health struct {
	writeErr     error  // of the newest write of the state
	removalErr   error  // of the newest attempt to remove the sandbox or the pod
	unresponsive bool   // the shim does not respond
	stale        string // why the volumes are not updated; empty: they are
}

// written remembers the result of the newest write. It reports a change between success and failure.
func (h *health) written(err error) (kind api.EventKind, f event.Fields, changed bool) {
	switch {
	case err != nil && h.writeErr == nil:
		kind, f, changed = api.EventStateNotDurable, event.Fields{"error": err.Error()}, true
	case err == nil && h.writeErr != nil:
		kind, changed = api.EventStateDurable, true
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
func (h *health) shim(m shimChanged) (kind api.EventKind, changed bool) {
	was := h.unresponsive
	h.unresponsive = !m.responds && !m.exited
	switch {
	case h.unresponsive && !was:
		return api.EventMonitorUnresponsive, true
	case m.responds && was:
		return api.EventMonitorResponding, true
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
func (h *health) volumes(stale string) (kind api.EventKind, f event.Fields, changed bool) {
	was := h.stale
	h.stale = stale
	switch {
	case stale != "" && was == "":
		return api.EventVolumesNotUpdated, event.Fields{"error": stale}, true
	case stale == "" && was != "":
		return api.EventVolumesUpdated, nil, true
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
