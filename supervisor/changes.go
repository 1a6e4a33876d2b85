package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Staged is everything that a new definition of a pod needs to start without a registry.
type Staged struct {
	// Images are the images of the containers, by name of the container. Containers that do not change have none.
	Images map[string]lifecycle.Image
	// Shadows are the images of the same containers that differ from other images of their names.
	Shadows map[string][]lifecycle.Shadow
	// RollsBack reports that an earlier definition replaces this one if it fails: until [Supervisor.Keep], what has failed is not started
	// again.
	RollsBack bool
	// Refused is why an earlier attempt to add the pod was rejected. The same reasons are not reported again.
	Refused []lifecycle.Refusal
}

// reservation is for a pod that is being changed or started.
type reservation struct {
	needed   *spec.Pod     // nil: it needs nothing now
	released chan struct{} // closed when the request has been answered
}

// changes returns what differs between two definitions, and between the images that containers use and those that they get.
func (s *shared) changes(from, to *spec.Pod, f lifecycle.Facts, images map[string]lifecycle.Image) []change.Change {
	list := append(s.between(from, to), imageChanges(from, to, f, images)...)
	change.Sort(list)
	return list
}

// affected returns the containers of a new definition that run with it sooner or later, although the pod goes on: those that were added,
// those with a change that is not in place, and all if the pod restarts. Their images must be present.
func affected(from, to *spec.Pod, changes []change.Change) []string {
	var names []string
	for _, c := range slices.Concat(to.InitContainers, to.Containers) {
		changed := slices.ContainsFunc(changes, func(ch change.Change) bool {
			return ch.Effect == change.RestartPod || ch.Container == c.Name && ch.Effect != change.InPlace
		})
		if changed || from.Container(c.Name) == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// ofSpec reports whether a change is of a field that is in the spec of a pod, not in its metadata.
func ofSpec(c change.Change) bool {
	field, _, _ := strings.Cut(c.Path, ".")
	return field != "labels" && field != "annotations"
}

// maxDescribed limits the changes in an event.
const maxDescribed = 10

// describe lists changes for people. It has no values: they may be long.
func describe(changes []change.Change) string {
	var list []string
	for _, c := range changes {
		list = append(list, c.Path)
	}
	if more := len(list) - maxDescribed; more > 0 {
		list = append(list[:maxDescribed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// byContainer describes the changes that restart each container of a definition.
func byContainer(to *spec.Pod, changes []change.Change) map[string]string {
	all := map[string][]change.Change{}
	for _, c := range changes {
		switch {
		case c.Effect == change.RestartPod:
			for _, one := range slices.Concat(to.InitContainers, to.Containers) {
				all[one.Name] = append(all[one.Name], c)
			}
		case c.Container != "" && c.Effect != change.InPlace:
			all[c.Container] = append(all[c.Container], c)
		}
	}
	texts := map[string]string{}
	for name, list := range all {
		texts[name] = describe(list)
	}
	return texts
}
