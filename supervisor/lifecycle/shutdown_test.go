package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestShutdownEndedWithoutRestart: a pod whose policy allows no restart starts after a shutdown only if none of its containers has run.
func TestShutdownEndedWithoutRestart(t *testing.T) {
	down := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.HostShutdown{Grace: time.Second, By: lifecycle.ByShutdown, At: t}
	})
	for name, row := range map[string]struct {
		past history
		want bool
	}{
		"no container has run":              {history{up(), down}, true},
		"a container has run":               {history{up(), ran("app", 1, 0), down}, false},
		"an earlier run of a container ran": {history{up(), ran("app", 1, 1), pulled("app", 2), issued("app", 2), down}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := fold(row.past).Apply(lifecycle.ShutdownEnded{At: at(20)})
			if starts := f.Stop.Requested.IsZero(); starts != row.want {
				t.Errorf("the pod starts: %t, want %t", starts, row.want)
			}
		})
	}
}
