package server

import (
	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec/change"
)

// changesOf converts the differences between two definitions of a pod.
func changesOf(changes []change.Change) []api.Change {
	if len(changes) == 0 {
		return nil
	}
	list := make([]api.Change, 0, len(changes))
	for _, c := range changes {
		list = append(list, api.Change{
			Path: c.Path, Container: c.Container, Old: c.Old, New: c.New, Diff: c.Diff, Effect: api.Effect(c.Effect.String()),
		})
	}
	return list
}
