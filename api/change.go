package api

import "github.com/podstead/podstead/spec/change"

// Effect is what a change of a field does to a running pod.
type Effect string

// The effects. A larger one includes the smaller ones before it.
const (
	EffectInPlace          Effect = "InPlace"          // nothing stops
	EffectNextRound        Effect = "NextRound"        // the change has an effect when the pod starts again
	EffectRestartContainer Effect = "RestartContainer" // one container is stopped and started, or only one of both
	EffectRestartPod       Effect = "RestartPod"       // all containers are stopped, and the pod starts again with its UID and volumes
	EffectReplacePod       Effect = "ReplacePod"       // the pod is stopped, and a pod with another UID takes its place
)

// Change is a difference between two definitions of a pod.
type Change struct {
	// Path is the field, such as "containers[0].image". Indexes are those of the new definition; those of what was removed are those of the
	// old one. Containers and volumes that only one definition has are one change.
	Path string `json:"path"`
	// Container is the container that the effect is on; empty: the pod. A field of the pod that several containers depend on has a change
	// for each of them.
	Container string `json:"container,omitempty"`
	// Old and New are the values as in a pod file, shortened; empty: the field is not set. Values of secrets are not shown.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Diff are the lines in which the old and the new value differ, as `diff -u`, if both are lists of strings or texts of several lines.
	Diff   string `json:"diff,omitempty"`
	Effect Effect `json:"effect"`
}

// String returns the change and its effect for people, such as
//
//	containers[0].image: "nginx:1.27" -> "nginx:1.28" (restarts container app)
func (c Change) String() string {
	return c.Path + ": " + c.converted().Values() + " (" + c.Consequence() + ")"
}

// Consequence returns what the change does, such as "restarts container app".
func (c Change) Consequence() string {
	converted := c.converted()
	if err := converted.Effect.UnmarshalText([]byte(c.Effect)); err != nil { // of a later version
		return string(c.Effect)
	}
	return converted.Consequence()
}

func (c Change) converted() change.Change {
	return change.Change{Path: c.Path, Container: c.Container, Old: c.Old, New: c.New}
}
