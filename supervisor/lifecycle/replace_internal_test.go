package lifecycle

import (
	"testing"

	"github.com/podstead/podstead/spec"
)

// TestSuperseded: a restart of the pod replaces all runs but those of ephemeral containers, and a container that has not run.
func TestSuperseded(t *testing.T) {
	f := Facts{Restart: Restart{Requested: Instant{Boot: "b", Mono: 1}}, Ephemeral: []spec.Container{{Name: "debug"}}}
	for _, row := range []struct {
		name string
		run  Attempt
		want bool
	}{
		{"app container", Attempt{Ref: Ref{Container: "app", Attempt: 1}}, true},
		{"ephemeral container", Attempt{Ref: Ref{Container: "debug", Attempt: 1}}, false},
		{"container that has not run", Attempt{}, false},
	} {
		if got := f.superseded(&row.run); got != row.want {
			t.Errorf("%s: %t, want %t", row.name, got, row.want)
		}
	}
}
