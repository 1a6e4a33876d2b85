package changetest

import (
	"strings"

	"github.com/podstead/podstead/spec/change"
)

// Effects are what a change of a definition does to a running pod.
type Effects struct {
	Replaced  bool // the pod, with all containers
	Restarted bool // the pod, with all containers
	// Containers are the containers that are restarted, started or stopped, with that word.
	Containers map[string]string
}

// EffectsOf returns what changes do, by their own words.
func EffectsOf(changes []change.Change) Effects {
	switch change.Largest(changes) { //nolint:exhaustive // the others are effects on containers
	case change.ReplacePod:
		return Effects{Replaced: true}
	case change.RestartPod:
		return Effects{Restarted: true}
	}
	e := Effects{Containers: map[string]string{}}
	past := map[string]string{"restarts": "restarted", "starts": "started", "stops": "stopped"}
	for _, c := range changes {
		if c.Effect == change.RestartContainer {
			verb, name, _ := strings.Cut(c.Consequence(), " container ")
			e.Containers[name] = past[verb]
		}
	}
	return e
}
