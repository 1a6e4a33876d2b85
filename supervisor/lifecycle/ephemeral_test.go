package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func addEphemeral(name string) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.EphemeralAdded{Container: spec.Container{Name: name, Image: "localhost/" + name}, At: t}
	}
}

func TestDecideEphemeral(t *testing.T) {
	pod := podOf(always, "init", "app")
	live := history{up(), ran("init", 1, 0), running("app", 1), addEphemeral("d")}
	rules := with(podOf(never, "side", "app"), own(never, rule(restartAll, "In", 42)))
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated}
	finish := func(name string) lifecycle.StopContainer {
		return lifecycle.StopContainer{Ref: run(name, 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonPodFinished}
	}
	decisions{
		{name: "image is pulled", pod: pod, past: live, now: 1, want: do{pull("d", 1, 1)}},
		{name: "starts when its image is present", pod: pod, past: history{live, pulled("d", 1)}, now: 1, want: do{start("d", 1, 0, 0)}},
		{name: "starts while an init container runs", pod: pod, past: history{up(), running("init", 1), addEphemeral("d")}, now: 1, want: do{pull("d", 1, 1)}},
		{name: "starts before the init container is pulled", pod: pod, past: history{up(), addEphemeral("d")}, now: 1, want: do{pull("d", 1, 1), pull("init", 1, 1)}},
		{name: "does not start without a sandbox", pod: pod, past: history{startSandbox(1), addEphemeral("d")}, now: 1},
		{name: "nothing to do while it runs", pod: pod, past: history{live, running("d", 1)}, now: 1},
		{name: "is not restarted, whatever the restart policy", pod: pod, past: history{live, ran("d", 1, 1)}, now: 1},
		{name: "is not restarted in a new sandbox", pod: podOf(always, "app"), past: history{
			up(), addEphemeral("d"), ran("d", 1, 1), tick(5), sandboxLost(1), sandboxRemoved(1), startSandbox(2),
			happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SandboxStarted{Sandbox: 2, At: t} }),
		}, now: 6, want: do{pull("app", 1, 1)}},
		{name: "failed creation is retried", pod: pod, past: history{live, tick(10), pulled("d", 1), failing(start("d", 1, 0, 0), refused)}, now: 10, wake: 20},
		{name: "start is retried if the engine was unavailable", pod: pod, past: history{live, tick(10), pulled("d", 1), failing(start("d", 1, 0, 0), unavailable)}, now: 11, want: do{start("d", 1, 0, 0)}},
		{name: "is stopped with the pod", pod: pod, past: history{live, running("d", 1), tick(10), stopped(9 * time.Second)}, now: 10, want: do{stop("app", 1, 9*time.Second), stop("d", 1, 9*time.Second)}},
		{name: "its pull is cancelled when the pod stops", pod: pod, past: history{up(), pull("d", 1, 1), addEphemeral("e"), pull("e", 1, 1), tick(10), stopped(9 * time.Second)}, now: 10, want: do{lifecycle.CancelPull{Container: "e", For: 1}}},
		{name: "is stopped when the pod has finished", pod: podOf(never, "app"), past: history{up(), addEphemeral("d"), running("d", 1), tick(10), ran("app", 1, 0)}, now: 10, want: do{finish("d")}},
		{name: "pod waits for its exit", pod: podOf(never, "app"), past: history{up(), addEphemeral("d"), running("d", 1), tick(10), ran("app", 1, 0), finish("d")}, now: 10, wake: 40},
		{
			name: "sidecars do not wait for it", pod: rules, past: history{up(), addEphemeral("d"), running("d", 1), running("side", 1), tick(10), ran("app", 1, 0)}, now: 10,
			want: do{finish("d"), finish("side")},
		},
		{
			name: "4.2 is not stopped by a restart of all containers", pod: rules, past: history{up(), addEphemeral("d"), running("d", 1), ran("side", 1, 0), ran("app", 1, 42)}, now: 1,
			want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
	}.check(t)
}

func TestStatusEphemeral(t *testing.T) {
	app := podOf(always, "app")
	rules := with(podOf(never, "app"), own(never, rule(restartAll, "In", 42)))
	live := history{up(), running("app", 1), addEphemeral("e"), addEphemeral("d")}
	statuses{
		{"sorted by name, not counted as unready", app, live, 1, "Running; app Running ready; d ContainerCreating; e ContainerCreating"},
		{"running", app, history{live, running("d", 1)}, 1, "Running; app Running ready; d Running; e ContainerCreating"},
		{"terminated, not restarted", app, history{live, ran("d", 1, 1)}, 1, "Running; app Running ready; d Error(1); e ContainerCreating"},
		{"pod is Running while one runs", podOf(never, "app"), history{up(), ran("app", 1, 0), addEphemeral("d"), running("d", 1)}, 1, "Running; app Completed(0); d Running"},
		{"exit code does not affect the phase", podOf(never, "app"), history{up(), ran("app", 1, 0), addEphemeral("d"), ran("d", 1, 1)}, 1, "Succeeded; app Completed(0); d Error(1)"},
		{"one that never ran stays Waiting", podOf(never, "app"), history{up(), ran("app", 1, 0), addEphemeral("d")}, 1, "Succeeded; app Completed(0); d ContainerCreating"},
		{
			"4.2 a restart of all containers leaves its end as it was", rules,
			history{up(), addEphemeral("d"), ran("d", 1, 3), ran("app", 1, 42), lifecycle.StartRound{Round: 2, By: run("app", 1)}},
			1,
			"Running; app RestartingAllContainers after RestartingAllContainers(137) +1; d Error(3)",
		},
	}.check(t)
	s := lifecycle.StatusOf(app, fold(history{live, running("d", 1)}), at(2)).EphemeralContainerStatuses[0]
	if s.Started != nil || s.Ready {
		t.Errorf("started or ready is set: %+v", s)
	}
}

func TestEphemeralAdded(t *testing.T) {
	facts := fold(history{running("app", 1), addEphemeral("d"), addEphemeral("d"), addEphemeral("app")})
	if len(facts.Ephemeral) != 1 || facts.Ephemeral[0].Image != "localhost/d" {
		t.Fatalf("ephemeral containers: %+v", facts.Ephemeral)
	}
	one, two := facts.Apply(addEphemeral("x")(at(2))), facts.Apply(addEphemeral("y")(at(2)))
	if one.Ephemeral[1].Name != "x" || two.Ephemeral[1].Name != "y" {
		t.Errorf("two containers added to the same facts: %v, %v", one.Ephemeral, two.Ephemeral)
	}
	pod := podOf(always, "app")
	pod.EphemeralContainers = []spec.Container{{Name: "d"}, {Name: "z"}}
	if found := facts.CatchUp(lifecycle.Found{Pod: pod}, at(2)).Ephemeral; len(found) != 2 || found[0].Image != "localhost/d" || found[1].Name != "z" {
		t.Errorf("containers found in the engine: %+v", found)
	}
	for i := range 100 {
		facts = facts.Apply(addEphemeral(fmt.Sprintf("d%d", i))(at(2)))
	}
	if n := len(facts.Ephemeral); n != 64 {
		t.Errorf("%d ephemeral containers, want 64", n)
	}
}
