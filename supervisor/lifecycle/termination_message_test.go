package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestTerminationMessageShare checks that each container has an equal share of the limit, truncated to whole runes.
func TestTerminationMessageShare(t *testing.T) {
	const letters = 2000 // of three bytes
	addEphemeral := func(name string) happened {
		return func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.EphemeralAdded{Container: spec.Container{Name: name}, At: t}
		}
	}
	stopping := func(name string) history {
		return history{running(name, 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: run(name, 1), Exit: lifecycle.Exit{Code: 1, Message: strings.Repeat("€", letters)}, At: t}
		})}
	}
	for _, row := range []struct {
		pod  *spec.Pod
		past history
		want int // runes
	}{
		{podOf(never, "app"), nil, letters},
		{podOf(never, "init", "side", "app"), nil, 4096 / 3},
		{podOf(never, "app"), history{addEphemeral("a"), addEphemeral("b"), addEphemeral("c"), addEphemeral("d")}, 12288 / 5 / 3},
	} {
		s := lifecycle.StatusOf(row.pod, fold(history{up(), row.past, stopping("app")}), at(1))
		if got := s.ContainerStatuses[0].State.Terminated.Message; got != strings.Repeat("€", row.want) {
			t.Errorf("%d init containers, %d ephemeral ones: %d bytes, want %d letters", len(row.pod.InitContainers), len(row.past), len(got), row.want)
		}
	}
}

// TestTerminationMessageOfOneContainer checks that a single container has the whole limit.
func TestTerminationMessageOfOneContainer(t *testing.T) {
	exit := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: run("app", 1), Exit: lifecycle.Exit{Message: strings.Repeat("x", 13000)}, At: t}
	})
	s := lifecycle.StatusOf(podOf(never, "app"), fold(history{up(), running("app", 1), exit}), at(1))
	if got := len(s.ContainerStatuses[0].State.Terminated.Message); got != 12288 {
		t.Errorf("%d bytes, want 12288", got)
	}
}
