package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestStatusShares: each container shows its share of what the messages of a pod may hold together, in whole letters.
func TestStatusShares(t *testing.T) {
	const letters = 2000 // of three bytes
	debug := func(name string) happened {
		return func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.EphemeralAdded{Container: spec.Container{Name: name}, At: t}
		}
	}
	told := func(name string) history {
		return history{running(name, 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: run(name, 1), Exit: lifecycle.Exit{Code: 1, Message: strings.Repeat("€", letters)}, At: t}
		})}
	}
	for _, row := range []struct {
		pod  *spec.Pod
		past history
		want int // letters
	}{
		{podOf(never, "app"), nil, letters},
		{podOf(never, "init", "side", "app"), nil, 4096 / 3},
		{podOf(never, "app"), history{debug("a"), debug("b"), debug("c"), debug("d")}, 12288 / 5 / 3},
	} {
		s := lifecycle.StatusOf(row.pod, fold(history{up(), row.past, told("app")}), at(1))
		if got := s.ContainerStatuses[0].State.Terminated.Message; got != strings.Repeat("€", row.want) {
			t.Errorf("%d init containers, %d ephemeral ones: %d bytes, want %d letters", len(row.pod.InitContainers), len(row.past), len(got), row.want)
		}
	}
}

// TestStatusShareOfOne is all there is.
func TestStatusShareOfOne(t *testing.T) {
	exit := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: run("app", 1), Exit: lifecycle.Exit{Message: strings.Repeat("x", 13000)}, At: t}
	})
	s := lifecycle.StatusOf(podOf(never, "app"), fold(history{up(), running("app", 1), exit}), at(1))
	if got := len(s.ContainerStatuses[0].State.Terminated.Message); got != 12288 {
		t.Errorf("%d bytes, want 12288", got)
	}
}
