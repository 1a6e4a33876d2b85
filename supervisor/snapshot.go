package supervisor

import (
	"maps"
	"reflect"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

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
