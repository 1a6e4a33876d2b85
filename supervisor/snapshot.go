package supervisor

import (
	"errors"
	"maps"
	"reflect"
	"strings"

	"github.com/podstead/podstead/spec"
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

// ShimUnresponsive is a condition that is present, and True, while the shim of a pod does not respond. The containers of the pod keep
// running, but they are not supervised.
const ShimUnresponsive lifecycle.ConditionType = "ShimUnresponsive"

// unresponsive returns the condition [ShimUnresponsive].
func unresponsive() lifecycle.Condition {
	return lifecycle.Condition{
		Type: ShimUnresponsive, Status: "True", Reason: "ShimTimeout",
		Message: "The shim of the pod does not respond, containers keep running without supervision",
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
	Pulling    map[string]lifecycle.Progress // by container; only images that are being pulled or imported
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

// Settled reports that no container runs and none will be started. Of a pod whose state cannot be saved, what it leaves may remain: it may
// not be removable either.
func (s *Snapshot) Settled() bool { return s.AtRest || s.NotDurable && s.Status.Phase.Terminal() }

// same reports whether two snapshots of a pod look the same to clients.
func (s *Snapshot) same(other *Snapshot) bool {
	return s.Pod == other.Pod && s.Outcome == other.Outcome && s.Facts.Trial == other.Facts.Trial && s.Facts.Restart == other.Facts.Restart && s.Owner == other.Owner && s.AtRest == other.AtRest && s.NotDurable == other.NotDurable && s.Facts.Stop == other.Facts.Stop && s.Facts.Collection == other.Facts.Collection &&
		maps.Equal(s.Pulling, other.Pulling) && reflect.DeepEqual(s.Status, other.Status)
}
