// Package change compares two definitions of a pod, and reports what a change of each field does to a running pod.
//
// The table of [Rows] has the effect of every field. It follows from what the runtime sets up once: for a sandbox, for a container, or at
// every use. The package does not know what runs, it only compares definitions.
package change

import (
	"fmt"
	"slices"
	"strings"
)

// Effect is what a change of a field does to a running pod. Effects are ordered: a larger one includes the smaller ones. In JSON it is its
// name.
type Effect int

// The effects, from the smallest to the largest.
const (
	// InPlace means that nothing stops. What is set up at a start, such as a postStart hook, is used by the next start of the container.
	InPlace Effect = iota
	// NextRound means that the change has an effect when the pod starts again, such as for an init container that has completed. An init
	// container that has not completed is restarted.
	NextRound
	// RestartContainer means that one container is stopped with its preStop hook and grace period, and started again. A container that only
	// one definition has is started or stopped.
	RestartContainer
	// RestartPod means that all containers are stopped with their hooks and grace periods, and the pod starts again in a new sandbox. It
	// keeps its UID and its emptyDir volumes.
	RestartPod
	// ReplacePod means that the pod is stopped, and a pod with the new definition and another UID takes its place.
	ReplacePod
)

var effectNames = [...]string{"InPlace", "NextRound", "RestartContainer", "RestartPod", "ReplacePod"}

// String returns the name of the effect.
func (e Effect) String() string { return effectNames[e] }

// MarshalText writes the name of the effect.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the name of an effect.
func (e *Effect) UnmarshalText(text []byte) error {
	i := slices.Index(effectNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown effect %q", text)
	}
	*e = Effect(i)
	return nil
}

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
	// Diff are the lines in which two lists or texts differ, as diff -u. It is not kept in the state.
	Diff   string `json:"-"`
	Effect Effect `json:"effect"`
}

// String returns the change and its effect for people, such as
//
//	containers[0].image: "nginx:1.27" -> "nginx:1.28" (restarts container app)
func (c Change) String() string { return c.Path + ": " + c.Values() + " (" + c.Consequence() + ")" }

// Values returns the old and the new value, such as `"nginx:1.27" -> "nginx:1.28"`, `"web" added` or `"web" removed`.
func (c Change) Values() string {
	switch {
	case c.Old == changedSecret && c.New == changedSecret:
		return changedSecret
	case c.Old == "" && c.New == changedSecret:
		return "added"
	case c.New == "" && c.Old == changedSecret:
		return "removed"
	case c.Old == "":
		return c.New + " added"
	case c.New == "":
		return c.Old + " removed"
	}
	return c.Old + " -> " + c.New
}

// Consequence returns what the change does, such as "restarts container app".
func (c Change) Consequence() string {
	switch c.Effect {
	case InPlace:
		return "in place"
	case NextRound:
		return "at the next start of the pod"
	case RestartPod:
		if c.LosesContent() {
			return "restarts the pod, the content of the volume is lost"
		}
		return "restarts the pod"
	case ReplacePod:
		return "replaces the pod"
	case RestartContainer:
	}
	verb := "restarts"
	if isEntry(c.Path) {
		switch {
		case c.Old == "":
			verb = "starts"
		case c.New == "":
			verb = "stops"
		}
	}
	return verb + " container " + c.Container
}

// LosesContent reports whether an emptyDir volume is empty after the change. The new one is another directory, or none.
func (c Change) LosesContent() bool {
	field, _ := strings.CutPrefix(c.Path, "volumes[")
	_, field, _ = strings.Cut(field, "]")
	return field == ".emptyDir.medium" || field == ".emptyDir" && c.New == ""
}

// Largest returns the largest effect of changes, [InPlace] if there are none.
func Largest(changes []Change) Effect {
	largest := InPlace
	for _, c := range changes {
		largest = max(largest, c.Effect)
	}
	return largest
}

// isEntry reports whether a path is that of a whole container.
func isEntry(path string) bool {
	name, index, ok := strings.Cut(path, "[")
	return ok && (name == "containers" || name == "initContainers") && strings.IndexByte(index, ']') == len(index)-1
}

// changedSecret is what is shown in place of a value of a secret.
const changedSecret = "(changed)"
