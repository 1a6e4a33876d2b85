package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func debug(name string) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.EphemeralAdded{Container: spec.Container{Name: name, Image: "localhost/" + name}, At: t}
	}
}

func TestDecideEphemeral(t *testing.T) {
	pod := podOf(always, "init", "app")
	live := history{up(), ran("init", 1, 0), running("app", 1), debug("d")}
	rules := with(podOf(never, "side", "app"), own(never, rule(restartAll, "In", 42)))
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated}
	finish := func(name string) lifecycle.StopContainer {
		return lifecycle.StopContainer{Ref: run(name, 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonPodFinished}
	}
	decisions{
		{name: "it has its image fetched", pod: pod, past: live, now: 1, want: do{pull("d", 1, 1)}},
		{name: "and starts", pod: pod, past: history{live, pulled("d", 1)}, now: 1, want: do{start("d", 1, 0, 0)}},
		{name: "while an init container runs too", pod: pod, past: history{up(), running("init", 1), debug("d")}, now: 1, want: do{pull("d", 1, 1)}},
		{name: "and before it is asked for", pod: pod, past: history{up(), debug("d")}, now: 1, want: do{pull("d", 1, 1), pull("init", 1, 1)}},
		{name: "not without a sandbox", pod: pod, past: history{startSandbox(1), debug("d")}, now: 1},
		{name: "then it runs", pod: pod, past: history{live, running("d", 1)}, now: 1},
		{name: "once, whatever the policy", pod: pod, past: history{live, ran("d", 1, 1)}, now: 1},
		{name: "also in another sandbox", pod: podOf(always, "app"), past: history{
			up(), debug("d"), ran("d", 1, 1), tick(5), lost(1), sandboxRemoved(1), startSandbox(2),
			happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SandboxStarted{Sandbox: 2, At: t} }),
		}, now: 6, want: do{pull("app", 1, 1)}},
		{name: "one that could not be created is tried again", pod: pod, past: history{live, tick(10), pulled("d", 1), failing(start("d", 1, 0, 0), refused)}, now: 10, wake: 20},
		{name: "and so is one that the engine did not answer", pod: pod, past: history{live, tick(10), pulled("d", 1), failing(start("d", 1, 0, 0), away)}, now: 11, want: do{start("d", 1, 0, 0)}},
		{name: "it ends with the pod", pod: pod, past: history{live, running("d", 1), tick(10), stopped(9 * time.Second)}, now: 10, want: do{stop("app", 1, 9*time.Second), stop("d", 1, 9*time.Second)}},
		{name: "and its pull does", pod: pod, past: history{up(), pull("d", 1, 1), debug("e"), pull("e", 1, 1), tick(10), stopped(9 * time.Second)}, now: 10, want: do{lifecycle.CancelPull{Container: "e", For: 1}}},
		{name: "a pod that is done does not wait for it", pod: podOf(never, "app"), past: history{up(), debug("d"), running("d", 1), tick(10), ran("app", 1, 0)}, now: 10, want: do{finish("d")}},
		{name: "but for its end", pod: podOf(never, "app"), past: history{up(), debug("d"), running("d", 1), tick(10), ran("app", 1, 0), finish("d")}, now: 10, wake: 40},
		{
			name: "sidecars do not wait for it", pod: rules, past: history{up(), debug("d"), running("d", 1), running("side", 1), tick(10), ran("app", 1, 0)}, now: 10,
			want: do{finish("d"), finish("side")},
		},
		{
			name: "4.2 a restart of all containers leaves it alone", pod: rules, past: history{up(), debug("d"), running("d", 1), ran("side", 1, 0), ran("app", 1, 42)}, now: 1,
			want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
	}.check(t)
}

func TestStatusEphemeral(t *testing.T) {
	app := podOf(always, "app")
	rules := with(podOf(never, "app"), own(never, rule(restartAll, "In", 42)))
	live := history{up(), running("app", 1), debug("e"), debug("d")}
	statuses{
		{"they are sorted by name, and neither ready nor a reason to wait", app, live, 1, "Running; app Running ready; d ContainerCreating; e ContainerCreating"},
		{"one runs", app, history{live, running("d", 1)}, 1, "Running; app Running ready; d Running; e ContainerCreating"},
		{"and has ended for good", app, history{live, ran("d", 1, 1)}, 1, "Running; app Running ready; d Error(1); e ContainerCreating"},
		{"a pod is not over while one runs", podOf(never, "app"), history{up(), ran("app", 1, 0), debug("d"), running("d", 1)}, 1, "Running; app Completed(0); d Running"},
		{"and how one ends does not decide", podOf(never, "app"), history{up(), ran("app", 1, 0), debug("d"), ran("d", 1, 1)}, 1, "Succeeded; app Completed(0); d Error(1)"},
		{"one that never ran waits to the end", podOf(never, "app"), history{up(), ran("app", 1, 0), debug("d")}, 1, "Succeeded; app Completed(0); d ContainerCreating"},
		{
			"4.2 a restart of all containers leaves its end as it was", rules,
			history{up(), debug("d"), ran("d", 1, 3), ran("app", 1, 42), lifecycle.StartRound{Round: 2, By: run("app", 1)}},
			1,
			"Running; app RestartingAllContainers after RestartingAllContainers(137) +1; d Error(3)",
		},
	}.check(t)
	s := lifecycle.StatusOf(app, fold(history{live, running("d", 1)}), at(2)).EphemeralContainerStatuses[0]
	if s.Started != nil || s.Ready {
		t.Errorf("it is started or ready: %+v", s)
	}
}

func TestEphemeralAdded(t *testing.T) {
	facts := fold(history{running("app", 1), debug("d"), debug("d"), debug("app")})
	if len(facts.Ephemeral) != 1 || facts.Ephemeral[0].Image != "localhost/d" {
		t.Fatalf("ephemeral containers: %+v", facts.Ephemeral)
	}
	one, two := facts.Apply(debug("x")(at(2))), facts.Apply(debug("y")(at(2)))
	if one.Ephemeral[1].Name != "x" || two.Ephemeral[1].Name != "y" {
		t.Errorf("two that were added to the same facts: %v, %v", one.Ephemeral, two.Ephemeral)
	}
	pod := podOf(always, "app")
	pod.EphemeralContainers = []spec.Container{{Name: "d"}, {Name: "z"}}
	if found := facts.CatchUp(lifecycle.Found{Pod: pod}, at(2)).Ephemeral; len(found) != 2 || found[0].Image != "localhost/d" || found[1].Name != "z" {
		t.Errorf("with those that the engine knows of: %+v", found)
	}
	for i := range 100 {
		facts = facts.Apply(debug(fmt.Sprintf("d%d", i))(at(2)))
	}
	if n := len(facts.Ephemeral); n != 64 {
		t.Errorf("%d ephemeral containers, want 64", n)
	}
}
