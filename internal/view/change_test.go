package view

import (
	"slices"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestPlanned checks the lines of a plan: a list that changes has the lines that differ, below its field and its effect.
func TestPlanned(t *testing.T) {
	got := Planned(&api.Applied{Pod: "web", Outcome: api.PodConfigured, Changes: []api.Change{
		{
			Path: "containers[0].command", Container: "app", Old: `["a", "b"]`, New: `["a", "c"]`, Diff: " a\n-b\n+c",
			Effect: api.EffectRestartContainer,
		},
		{Path: "labels.a", New: `"1"`, Effect: api.EffectInPlace},
	}})
	want := []string{
		"pod/web would be configured:",
		"  containers[0].command (restarts container app):", "     a", "    -b", "    +c",
		`  labels.a: "1" added (in place)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
