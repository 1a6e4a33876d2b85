package emit

import (
	"encoding/json"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
)

// resizeSummary is the text of the events of a resize (kubelet: podResourceSummary).
type resizeSummary struct {
	InitContainers []resizedContainer `json:"initContainers,omitempty"`
	Containers     []resizedContainer `json:"containers,omitempty"`
	Generation     int64              `json:"generation"`
	Error          string             `json:"error,omitempty"`
}

type resizedContainer struct {
	Name      string         `json:"name"`
	Resources spec.Resources `json:"resources,omitzero"`
}

// resized returns the fields of an event of a resize to the definition of the pod. The cause is empty if it has not failed.
func (e Emission) resized(cause string) event.Fields {
	list := func(containers []spec.Container) (all []resizedContainer) {
		for i := range containers {
			all = append(all, resizedContainer{containers[i].Name, containers[i].Resources})
		}
		return all
	}
	text, err := json.Marshal(resizeSummary{
		InitContainers: list(e.pod.InitContainers), Containers: list(e.pod.Containers), Generation: e.facts.Generation(), Error: cause,
	})
	if err != nil { // names and quantities can be written
		text = []byte(err.Error())
	}
	f := event.Fields{"resources": string(text)}
	if cause != "" {
		f["error"] = cause
	}
	return f
}
