package supervisor

import (
	"errors"
	"maps"
	"reflect"

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

// Snapshot is a pod at one moment. It is immutable.
type Snapshot struct {
	Pod        *spec.Pod // with ephemeral containers
	Owner      state.Owner
	Facts      lifecycle.Facts
	Status     lifecycle.Status
	Pulling    map[string]Progress // by container; only images that are being pulled
	AtRest     bool                // the phase is terminal and nothing of the pod runs
	NotDurable bool                // the newest state could not be saved
}

// same reports whether two snapshots of a pod look the same to clients.
func (s *Snapshot) same(other *Snapshot) bool {
	return s.Owner == other.Owner && s.AtRest == other.AtRest && s.NotDurable == other.NotDurable && s.Facts.Stop == other.Facts.Stop &&
		maps.Equal(s.Pulling, other.Pulling) && reflect.DeepEqual(s.Status, other.Status)
}
