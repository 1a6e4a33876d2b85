package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	always, onFailure, never = spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever
	again, restartAll        = "Restart", "RestartAllContainers"
)

func TestDecideRestartAll(t *testing.T) {
	pod := with(podOf(never, "init", "side", "app", "other"), own(never, rule(restartAll, "In", 42)), hook(lifecycle.PreStop))
	within(pod, "other", hook(lifecycle.PreStop))
	up1 := history{up(), ran("init", 1, 0), running("side", 1), running("app", 1), running("other", 1)}
	asks := history{up1, tick(10), exited("app", 1, 42)}
	end := func(name string) lifecycle.StopContainer {
		return lifecycle.StopContainer{Ref: run(name, 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonRestartingAllContainers}
	}
	ended := history{asks, end("other"), end("side"), exited("other", 1, 0), exited("side", 1, 0)}
	begin := lifecycle.StartRound{Round: 2, By: run("app", 1)}
	round2 := history{ended, begin}
	start2 := func(name string, restarts int) lifecycle.StartContainer {
		return lifecycle.StartContainer{
			Ref: lifecycle.Ref{Container: name, Round: 2, Attempt: 2}, Sandbox: 1, Restarts: restarts,
		}
	}
	up2 := func(name string) history {
		return history{pulled(name, 2), start2(name, 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerStarted{Ref: start2(name, 1).Ref, At: t}
		})}
	}
	done2 := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: start2("init", 1).Ref, At: t}
	})
	again42 := history{up2("init"), done2, removeContainer("init", 1), up2("app"), happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: start2("app", 1).Ref, Exit: lifecycle.Exit{Code: 42}, At: t}
	}), removeContainer("app", 1)}
	initRule := within(podOf(always, "init", "app"), "init", own(never, rule(restartAll, "In", 0, 7)))
	sideEnds := within(podOf(never, "side", "init", "app"), "side", own(always, rule(restartAll, "In", 7)))
	sideRule := within(podOf(always, "side", "app"), "side", own(always, rule(restartAll, "In", 7)))
	decisions{
		{name: "4.2 all containers are stopped at once with 2 s and without hooks", pod: pod, past: asks, now: 10, want: do{end("other"), end("side")}},
		{name: "4.2 exit code without a matching rule does nothing", pod: pod, past: history{up1, tick(10), exited("app", 1, 41)}, now: 10},
		{name: "4.2 waits until all containers have terminated", pod: pod, past: history{asks, end("other"), end("side"), exited("other", 1, 0)}, now: 11, wake: 12},
		{name: "4.2 containers that ignore the stop signal are killed", pod: pod, past: history{asks, end("other"), end("side"), exited("other", 1, 0)}, now: 12, want: do{kill("side", 1)}},
		{name: "4.2 new round starts when all containers have terminated", pod: pod, past: ended, now: 10, want: do{begin}},
		{name: "4.2 next round does not start within 1 s", pod: pod, past: history{round2, again42}, now: 10.999, wake: 11},
		{name: "4.2 next round starts after 1 s", pod: pod, past: history{round2, again42}, now: 11, want: do{lifecycle.StartRound{Round: 3, By: start2("app", 1).Ref}}},
		{name: "4.2 first init container is pulled at once in the same sandbox", pod: pod, past: round2, now: 10, want: do{pull("init", 2, 1)}},
		{name: "4.2 restart counts are raised and back-off levels are unchanged", pod: pod, past: history{round2, pulled("init", 2)}, now: 10, want: do{start2("init", 1)}},
		{name: "4.2 sidecar follows the init container", pod: pod, past: history{round2, up2("init"), done2, removeContainer("init", 1)}, now: 10, want: do{pull("side", 2, 1)}},
		{
			name: "4.2 app containers follow, including completed ones with Never", pod: pod,
			past: history{round2, up2("init"), done2, removeContainer("init", 1), up2("side"), pulled("app", 2), pulled("other", 2)}, now: 10, want: do{start2("app", 1)},
		},
		{
			name: "4.2 container that is being restarted by its policy is stopped", pod: with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42))),
			past: history{
				up(), running("app", 1), ran("other", 1, 1), tick(10), exited("app", 1, 42), begin, pulled("app", 2), pulled("other", 2), up2("app"),
			}, now: 10, want: do{start2("other", 1)},
		},
		{name: "4.2 running preStop hook is cancelled", pod: pod, past: history{
			up1, lifecycle.RunPreStop{Ref: run("other", 1), Limit: time.Minute, Reason: lifecycle.ReasonLivenessProbe}, tick(10), exited("app", 1, 42),
		}, now: 10, want: do{
			lifecycle.StopContainer{Ref: run("other", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonLivenessProbe}, end("side"),
		}},
		{
			name: "4.2 first round in place has no minimum age of the host", pod: with(podOf(never, "app"), own(never, rule(restartAll, "In", 42))),
			past: history{tick(0.2), up(), ran("app", 1, 42)}, now: 0.5, want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
		{
			name: "4.2 triggered by any app container", pod: within(podOf(never, "app", "other"), "other", own(never, rule(restartAll, "In", 42))),
			past: history{up(), ran("app", 1, 0), ran("other", 1, 42)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("other", 1)}},
		},
		{name: "4.2 triggered by a failed init container", pod: initRule, past: history{up(), ran("init", 1, 7)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("init", 1)}}},
		{name: "4.2 triggered by a succeeded init container", pod: initRule, past: history{up(), ran("init", 1, 0)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("init", 1)}}},
		{name: "4.2 pod without a rule that finished before the boot is terminated", pod: podOf(never, "app"), past: history{tick(-5), up(), ran("app", 1, 0)}, now: 1, want: do{removeSandbox(1)}},
		{name: "4.2 not triggered by a sidecar that exits after the app containers completed", pod: sideEnds, past: history{up(), running("side", 1), ran("app", 1, 0), tick(5), exited("side", 1, 7)}, now: 5, want: do{removeSandbox(1)}},
		{name: "4.2 not triggered by a sidecar that exits after an init container failed", pod: sideEnds, past: history{up(), running("side", 1), ran("init", 1, 3), tick(5), exited("side", 1, 7)}, now: 5, want: do{removeSandbox(1)}},
		{name: "4.2 triggered by a sidecar that exited before the app containers completed", pod: sideEnds, past: history{up(), running("side", 1), running("app", 1), tick(3), exited("side", 1, 7), tick(5), exited("app", 1, 0)}, now: 5, want: do{lifecycle.StartRound{Round: 2, By: run("side", 1)}}},
		{name: "4.2 triggered by a sidecar", pod: sideRule, past: history{up(), ran("side", 1, 7)}, now: 1, want: do{lifecycle.StartRound{Round: 2, By: run("side", 1)}}},
		{
			name: "4.2 first exit is the trigger, not the exit of a container stopped by the restart", pod: within(with(podOf(never, "app", "other"), own(never, rule(restartAll, "NotIn", 0))), "other", own(never, rule(restartAll, "In", 42))),
			past: history{up(), running("app", 1), running("other", 1), tick(10), exited("other", 1, 42), end("app"), tick(11), exited("app", 1, 143)}, now: 11,
			want: do{lifecycle.StartRound{Round: 2, By: run("other", 1)}},
		},
		{
			name: "4.2 first exit is the trigger, whatever the order in the pod file", pod: within(with(podOf(never, "app", "other"), own(never, rule(restartAll, "In", 42))), "other", own(never, rule(restartAll, "NotIn", 0))),
			past: history{up(), running("app", 1), running("other", 1), tick(10), exited("app", 1, 42), end("other"), tick(11), exited("other", 1, 143)}, now: 11,
			want: do{lifecycle.StartRound{Round: 2, By: run("app", 1)}},
		},
		{
			name: "7.4 not triggered by a sidecar that is stopped with the pod", pod: within(podOf(never, "side", "app"), "side", own(always, rule(restartAll, "NotIn", 0))),
			past: history{
				up(), running("side", 1), ran("app", 1, 0), lifecycle.StopContainer{Ref: run("side", 1), Reason: lifecycle.ReasonPodFinished}, tick(2), exited("side", 1, 143),
			}, now: 2, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 stopping pod terminates instead", pod: pod, past: history{asks, stopped(9 * time.Second), exited("side", 1, 0)}, now: 10,
			want: do{preStop("other", 1, 9*time.Second, lifecycle.ReasonStopped)},
		},
		{
			name: "4.2 trigger is dropped if the sandbox is lost", pod: with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42))),
			past: history{up(), running("app", 1), ran("other", 1, 0), tick(10), exited("app", 1, 42), sandboxLost(1)}, now: 10, want: do{removeSandbox(1)},
		},
		{
			name: "4.2 reset runs do not prevent a new sandbox with Never", pod: podOf(never, "app", "other"),
			past: history{up(), ran("app", 1, 42), begin, tick(10), sandboxLost(1), sandboxRemoved(1)}, now: 11,
			want: do{lifecycle.StartSandbox{Sandbox: 2, Round: 3}},
		},
		{
			name: "7.5 deadline applies during the restart", pod: func() *spec.Pod {
				p := with(podOf(never, "app", "other"), own(never, rule(restartAll, "In", 42)))
				limit := spec.Seconds(9)
				p.ActiveDeadlineSeconds = &limit
				return p
			}(),
			past: history{up(), running("app", 1), running("other", 1), exited("app", 1, 42), end("other")}, now: 10, want: do{failPod(30 * time.Second)},
		},
	}.check(t)
}

func TestStatusRestartAll(t *testing.T) {
	pod := func(names ...string) *spec.Pod {
		return with(podOf(never, names...), own(never, rule(restartAll, "In", 42)))
	}
	two := pod("app", "other")
	three := pod("app", "init", "side")
	asks := history{up(), running("app", 1), running("other", 1), exited("app", 1, 42)}
	begin := lifecycle.StartRound{Round: 2, By: run("app", 1)}
	round2 := history{asks, exited("other", 1, 0), begin}
	all3 := history{up(), ran("init", 1, 0), running("side", 1), running("app", 1), exited("app", 1, 42), exited("side", 1, 0), begin}
	init2 := history{
		pulled("init", 2),
		lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "init", Round: 2, Attempt: 2}, Sandbox: 1, Restarts: 1},
		happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerStarted{Ref: lifecycle.Ref{Container: "init", Round: 2, Attempt: 2}, At: t}
		}),
	}
	statuses{
		{"4.2 trigger shows its exit code", two, asks, 1, "Running; app Error(42); other Running ready"},
		{"4.2 trigger shows its exit code after all containers terminated", two, history{asks, exited("other", 1, 0)}, 1, "Running; app Error(42); other Completed(0)"},
		{"4.2 trigger shows its exit code despite an earlier back-off", with(pod("app", "other"), own(never, rule(again, "In", 3), rule(restartAll, "In", 42))), history{up(), ran("app", 1, 3), running("app", 2), running("other", 1), exited("app", 2, 42)}, 1, "Running; app Error(42) after Error(3) +1; other Running ready"},
		{"4.2 all containers wait in the new round", two, round2, 1, "Running; app RestartingAllContainers after RestartingAllContainers(137) +1; other RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 container that never ran is ContainerCreating", two, history{up(), ran("app", 1, 42), begin}, 1, "Pending; app RestartingAllContainers after RestartingAllContainers(137) +1; other ContainerCreating"},
		{"4.2 container with a failed pull shows the pull error", two, history{round2, pullFailed("app", 2, 1, lifecycle.ReasonErrImagePull)}, 1, "Running; app ErrImagePull after RestartingAllContainers(137) +1; other RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 init containers and sidecars wait in the new round", three, all3, 1, "Running; init RestartingAllContainers after RestartingAllContainers(137) +1; side RestartingAllContainers after RestartingAllContainers(137) +1; app RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 pod is Pending while the init container runs again", three, history{all3, init2}, 1, "Pending; init Running after RestartingAllContainers(137) +1; side RestartingAllContainers after RestartingAllContainers(137) +1; app RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 pod that is stopped in the new round has failed", two, history{round2, stopped(time.Minute)}, 1, "Failed; app RestartingAllContainers(137) +1; other RestartingAllContainers(137) +1"},
	}.check(t)
}
