package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestDecideSidecarStart(t *testing.T) {
	pod := podOf(spec.RestartNever, "side-a", "init", "side-b", "app")
	probed1 := within(podOf(spec.RestartNever, "side-a", "side-b", "app"), "side-a", probe(startup), probe(liveness), probe(readiness))
	hooked1 := within(podOf(spec.RestartNever, "side-a", "app"), "side-a", hook(lifecycle.PostStart))
	a := running("side-a", 1)
	ready := history{up(), a, ran("init", 1, 0), running("side-b", 1)}
	decisions{
		{name: "3 is started in order like an init container", pod: pod, past: up(), now: 1, want: do{pull("side-a", 1, 1)}},
		{name: "3 next container waits for its start", pod: pod, past: history{up(), pulled("side-a", 1), issued("side-a", 1)}, now: 1},
		{name: "3 next container does not wait for its exit", pod: pod, past: history{up(), a}, now: 1, want: do{pull("init", 1, 1)}},
		{name: "3 next container waits for a running init container", pod: pod, past: history{up(), a, running("init", 1)}, now: 1},
		{
			name: "3 next sidecar follows a completed init container", pod: pod, past: history{up(), a, ran("init", 1, 0)}, now: 1,
			want: do{pull("side-b", 1, 1)},
		},
		{name: "3 app container follows the last sidecar", pod: pod, past: ready, now: 1, want: do{pull("app", 1, 1)}},
		{name: "3 next container waits for its startup probe", pod: probed1, past: history{up(), a}, now: 1},
		{
			name: "3 next container follows a successful startup probe", pod: probed1,
			past: history{up(), a, probed("side-a", 1, startup, good)}, now: 1, want: do{pull("side-b", 1, 1)},
		},
		{
			name: "3 failed startup probe stops the sidecar but not the pod", pod: probed1,
			past: history{up(), a, tick(5), probed("side-a", 1, startup, bad)}, now: 5,
			want: do{lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonStartupProbe}},
		},
		{
			name: "3 next container does not wait for readiness", pod: probed1,
			past: history{up(), a, probed("side-a", 1, startup, good), probed("side-a", 1, readiness, bad)}, now: 1,
			want: do{pull("side-b", 1, 1)},
		},
		{
			name: "3 next container does not wait for liveness", pod: probed1,
			past: history{up(), a, tick(5), probed("side-a", 1, startup, good), probed("side-a", 1, liveness, bad)}, now: 5,
			want: do{
				lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonLivenessProbe},
				pull("side-b", 1, 1),
			},
		},
		{
			name: "3 next container waits for its postStart hook", pod: hooked1, past: history{up(), a}, now: 1,
			want: do{postStart("side-a", 1)},
		},
		{
			name: "3 next container follows the postStart hook", pod: hooked1,
			past: history{up(), a, postStart("side-a", 1), hookDone("side-a", 1, lifecycle.PostStart)}, now: 1, want: do{pull("app", 1, 1)},
		},
		{
			name: "3 exited sidecar is restarted before the next container starts", pod: pod, past: history{up(), ran("side-a", 1, 0)},
			now: 1, want: do{pull("side-a", 2, 1)},
		},
		{
			name: "3 sidecar is restarted with back-off, whatever its exit code and the policy", pod: pod,
			past: history{up(), tick(10), ran("side-a", 1, 0), ran("side-a", 2, 0), removeContainer("side-a", 1)}, now: 10, wake: 20,
		},
		{
			name: "3 sidecar is restarted while a later init container runs", pod: pod,
			past: history{up(), ran("side-a", 1, 1), running("init", 1)}, now: 1, want: do{pull("side-a", 2, 1)},
		},
		{
			name: "3 later container does not wait for its restart", pod: pod,
			past: history{up(), ran("side-a", 1, 1), pull("side-a", 2, 1), ran("init", 1, 0)}, now: 1, want: do{pull("side-b", 1, 1)},
		},
		{
			name: "3 app container does not wait for its restart", pod: pod,
			past: history{up(), ran("side-a", 1, 1), pull("side-a", 2, 1), ran("init", 1, 0), running("side-b", 1)}, now: 1,
			want: do{pull("app", 1, 1)},
		},
		{
			name: "3 sidecar is restarted while the app container runs", pod: pod,
			past: history{ready, running("app", 1), exited("side-b", 1, 0)}, now: 1,
			want: do{pull("side-b", 2, 1)},
		},
		{
			name: "3 unanswered restart is retried while the app container runs", pod: pod,
			past: history{
				ready, running("app", 1), exited("side-b", 1, 0), pulled("side-b", 2), tick(10),
				failing(start("side-b", 2, 1, 1), unavailable),
			}, now: 11, want: do{start("side-b", 2, 1, 0)},
		},
		{
			name: "3 completed init container without a record is not run again", pod: pod, past: history{up(), a, running("side-b", 1)},
			now: 1, want: do{pull("app", 1, 1)},
		},
		{
			name: "3 failed init container after a sidecar is restarted", pod: podOf(spec.RestartAlways, "side-a", "init", "app"),
			past: history{up(), a, ran("init", 1, 1)}, now: 1, want: do{pull("init", 2, 1)},
		},
		{
			name: "3 sidecar starts at once in a new round, with its restart count", pod: podOf(spec.RestartAlways, "side-a", "app"),
			past: history{
				up(), tick(10), ran("side-a", 1, 1), ran("side-a", 2, 1), removeContainer("side-a", 1), sandboxLost(1), sandboxRemoved(1),
				startSandbox(2),
				happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SandboxStarted{Sandbox: 2, At: t} }),
				pulled("side-a", 3),
			},
			now: 11, want: do{lifecycle.StartContainer{
				Ref: lifecycle.Ref{Container: "side-a", Round: 2, Attempt: 3}, Sandbox: 2, Restarts: 2,
			}},
		},
	}.check(t)
}

func TestDecideSidecarStop(t *testing.T) {
	pod := podOf(spec.RestartNever, "side-a", "init", "side-b", "app")
	up1 := history{up(), running("side-a", 1), ran("init", 1, 0), running("side-b", 1), running("app", 1)}
	waitB, waitA := waitForTurn("side-b", 9*time.Second,
		lifecycle.ReasonStopped), waitForTurn("side-a", 9*time.Second, lifecycle.ReasonStopped)
	stopping := history{up1, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second), waitB, waitA}
	turn := waitForTurn("side-a", 30*time.Second, lifecycle.ReasonPodFinished)
	finish := func(name string, grace float64) lifecycle.StopContainer {
		return lifecycle.StopContainer{
			Ref: run(name, 1), Grace: time.Duration(grace * float64(time.Second)), Reason: lifecycle.ReasonPodFinished,
		}
	}
	hooks := within(within(podOf(spec.RestartNever, "side-a", "side-b", "app"), "side-a", hook(lifecycle.PreStop)), "side-b",
		hook(lifecycle.PreStop))
	both := history{up(), running("side-a", 1), running("side-b", 1), running("app", 1)}
	hookOf := func(name string) lifecycle.RunPreStop {
		return preStop(name, 1, 9*time.Second, lifecycle.ReasonStopped)
	}
	waiting := history{both, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second), hookOf("side-b"), hookOf("side-a")}
	decisions{
		{
			name: "7.3 app containers get the stop signal first", pod: pod, past: history{up1, tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("app", 1, 9*time.Second), waitB, waitA},
		},
		{name: "7.3 sidecars wait for the app containers", pod: pod, past: stopping, now: 12, wake: 19},
		{
			name: "7.3 last sidecar follows the app containers", pod: pod, past: history{stopping, tick(12), exited("app", 1, 0)}, now: 12,
			want: do{stop("side-b", 1, 7*time.Second)}, wake: 19,
		},
		{
			name: "7.3 previous sidecar follows the last one", pod: pod,
			past: history{stopping, tick(12), exited("app", 1, 0), stop("side-b", 1, 7*time.Second), tick(13), exited("side-b", 1, 0)},
			now:  13,
			want: do{stop("side-a", 1, 6*time.Second)},
		},
		{
			name: "7.3 sidecar that is not running is not awaited", pod: pod,
			past: history{up(), running("side-a", 1), ran("init", 1, 0), ran("side-b", 1, 1), tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("side-a", 1, 9*time.Second)},
		},
		{
			name: "7.3 init container is stopped at once and not awaited", pod: pod,
			past: history{up(), running("side-a", 1), running("init", 1), tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("init", 1, 9*time.Second), stop("side-a", 1, 9*time.Second)},
		},
		{
			name: "7.3 all get the stop signal and 2 s when the grace period has passed", pod: pod, past: stopping, now: 19,
			want: do{kill("app", 1), stop("side-b", 1, 2*time.Second), stop("side-a", 1, 2*time.Second)},
		},
		{
			name: "7.3 force kills all at once", pod: pod, past: history{up1, forced}, now: 10,
			want: do{kill("app", 1), kill("side-b", 1), kill("side-a", 1)},
		},
		{
			name: "7.3 preStop hooks run at the same time", pod: hooks, past: history{both, tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("app", 1, 9*time.Second), hookOf("side-b"), hookOf("side-a")},
		},
		{
			name: "7.3 stop signal waits for the preStop hook and for other containers", pod: hooks,
			past: history{waiting, hookDone("side-b", 1, lifecycle.PreStop), hookDone("side-a", 1, lifecycle.PreStop)}, now: 12, wake: 19,
		},
		{
			name: "7.3 stop signal waits for the later of preStop hook and other containers", pod: hooks,
			past: history{waiting, tick(12), exited("app", 1, 0), hookDone("side-a", 1, lifecycle.PreStop)}, now: 12, wake: 19,
		},
		{
			name: "7.3 stop signal gets the rest of the grace period", pod: hooks,
			past: history{
				waiting, tick(12), exited("app", 1, 0), hookDone("side-a", 1, lifecycle.PreStop), tick(14),
				hookDone("side-b", 1, lifecycle.PreStop),
			},
			now:  14,
			want: do{stop("side-b", 1, 5*time.Second)}, wake: 19,
		},
		{
			name: "7.3 sidecar that exits meanwhile is not restarted", pod: pod, past: history{stopping, exited("side-b", 1, 1)}, now: 12,
			wake: 19,
		},
		{
			name: "7.4 last sidecar is stopped with the whole grace period after the app containers completed", pod: pod,
			past: history{up1, tick(10), exited("app", 1, 0)}, now: 10, want: do{finish("side-b", 30), turn},
		},
		{
			name: "7.4 sidecars share one grace period", pod: pod,
			past: history{up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn, tick(15), exited("side-b", 1, 0)}, now: 15,
			want: do{finish("side-a", 25)},
		},
		{
			name: "7.4 sidecars are stopped when the shared grace period has passed", pod: pod,
			past: history{up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn}, now: 40,
			want: do{kill("side-b", 1), finish("side-a", 2)},
		},
		{
			name: "7.4 shared grace period starts with the first preStop hook",
			pod:  within(podOf(spec.RestartNever, "side-a", "side-b", "app"), "side-b", hook(lifecycle.PreStop)),
			past: history{
				both, tick(10), exited("app", 1, 0), preStop("side-b", 1, 30*time.Second, lifecycle.ReasonPodFinished), turn, tick(14),
				exited("side-b", 1, 0), cancel("side-b", 1, lifecycle.PreStop),
			},
			now: 14, want: do{finish("side-a", 26)},
		},
		{
			name: "7.4 shared grace period applies if the later sidecar exits by itself", pod: podOf(never, "side-a", "side-b", "app"),
			past: history{
				both, tick(5),
				lifecycle.StopContainer{Ref: run("side-b", 1), Grace: 20 * time.Second, Reason: lifecycle.ReasonLivenessProbe},
				tick(10), exited("app", 1, 0), turn, tick(35.5), kill("side-b", 1),
			}, now: 36, wake: 40,
		},
		{
			name: "7.4 sidecars are stopped after an init container failed without restart",
			pod:  podOf(spec.RestartNever, "side-a", "init", "app"),
			past: history{up(), running("side-a", 1), tick(10), ran("init", 1, 1)}, now: 10, want: do{finish("side-a", 30)},
		},
		{
			name: "7.4 sidecars are not stopped when a sidecar crashes", pod: podOf(spec.RestartNever, "side-a", "app"),
			past: history{up(), ran("side-a", 1, 1), running("app", 1)}, now: 10, want: do{pull("side-a", 2, 1)},
		},
		{
			name: "7.4 sandbox is removed after the sidecars", pod: pod,
			past: history{up(), ran("side-a", 1, 137), ran("init", 1, 0), ran("side-b", 1, 0), ran("app", 1, 0)}, now: 1,
			want: do{removeSandbox(1)},
		},
		{
			name: "3 sidecars in a lost sandbox are stopped in order", pod: podOf(spec.RestartAlways, "side-a", "app"),
			past: history{up(), running("side-a", 1), running("app", 1), tick(10), sandboxLost(1)}, now: 10,
			want: do{
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
				waitForTurn("side-a", 30*time.Second, lifecycle.ReasonSandboxChanged),
			},
		},
		{
			name: "3 sidecars in a lost sandbox share one grace period", pod: podOf(spec.RestartAlways, "side-a", "app"),
			past: history{
				up(), running("side-a", 1), running("app", 1), tick(10), sandboxLost(1),
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
				waitForTurn("side-a", 30*time.Second, lifecycle.ReasonSandboxChanged), tick(14), exited("app", 1, 0),
			}, now: 14,
			want: do{lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 26 * time.Second, Reason: lifecycle.ReasonSandboxChanged}},
		},
		{
			name: "7.1 stop request shortens the grace period of a waiting sidecar", pod: pod,
			past: history{
				up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn, tick(11), stopped(3 * time.Second), exited("side-b", 1, 0),
			},
			now:  12,
			want: do{lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{
			name: "7.1 stop request does not extend the grace period of a waiting sidecar", pod: pod,
			past: history{
				up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn, tick(11), stopped(time.Hour), exited("side-b", 1, 0),
			},
			now:  12,
			want: do{finish("side-a", 28)},
		},
	}.check(t)
}

func TestStatusSidecars(t *testing.T) {
	pod := podOf(never, "side", "init", "app")
	side := history{up(), running("side", 1)}
	all := history{side, ran("init", 1, 0), running("app", 1)}
	gated := within(podOf(never, "side", "app"), "side", probe(startup), probe(readiness))
	round2 := history{sandboxLost(1), sandboxRemoved(1), startSandbox(2)}
	again := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "side", Round: 2, Attempt: 2}, Sandbox: 2, Restarts: 1}
	runsAgain := happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ContainerStarted{Ref: again.Ref, At: t} })
	statuses{
		{
			"2.1 Pending while the sidecar runs and the app container does not", pod, side, 1,
			"Pending; side Running ready; init PodInitializing; app PodInitializing",
		},
		{"2.1 Running when the app container runs", pod, all, 1, "Running; side Running ready; init Completed(0) ready; app Running ready"},
		{
			"2.1 Pending while the first start of the sidecar is in progress", pod,
			history{up(), pulled("side", 1), issued("side", 1)},
			1,
			"Pending; side PodInitializing; init PodInitializing; app PodInitializing",
		},
		{"2.1 Pending while the sidecar is not started", gated, side, 1, "Pending; side Running not started; app PodInitializing"},
		{
			"2.1 Pending before the app container ran", gated,
			history{side, probed("side", 1, startup, good)},
			1,
			"Pending; side Running; app PodInitializing",
		},
		{
			"2.1 Running while a restarted sidecar is not started", gated,
			history{side, probed("side", 1, startup, good), running("app", 1), exited("side", 1, 1), running("side", 2)},
			1,
			"Running; side Running after Error(1) +1 not started; app Running ready",
		},
		{
			"2.1 Running while app container and sidecar are restarted", gated,
			history{
				side, probed("side", 1, startup, good), ran("app", 1, 1), start("app", 2, 1, 1), exited("side", 1, 1), running("side", 2),
			},
			1, "Running; side Running after Error(1) +1 not started; app Error(1)",
		},
		{
			"2.1 Pending in a new round while the sidecar is not started", within(podOf(always, "side", "app"), "side", probe(startup)),
			history{side, probed("side", 1, startup, good), ran("app", 1, 3), exited("side", 1, 3), round2, again, runsAgain},
			1,
			"Pending; side Running after Error(3) +1 not started; app Error(3)",
		},
		{
			"2.1 Running while the sidecar is restarted", pod,
			history{all, exited("side", 1, 0)},
			1,
			"Running; side Completed(0); init Completed(0) ready; app Running ready",
		},
		{
			"4.3 sidecar backs off after exit code 0", pod,
			history{up(), ran("side", 1, 0), running("side", 2), ran("init", 1, 0), running("app", 1), exited("side", 2, 0)},
			2,
			"Running; side CrashLoopBackOff after Completed(0) +1; init Completed(0) ready; app Running ready",
		},
		{
			"2.1 Running while only sidecars run", pod,
			history{all, exited("app", 1, 0)},
			1,
			"Running; side Running ready; init Completed(0) ready; app Completed(0)",
		},
		{
			"2.1 exit code of a sidecar does not fail the pod", pod,
			history{all, exited("app", 1, 0), exited("side", 1, 137)},
			1,
			"Succeeded; side Error(137); init Completed(0) ready; app Completed(0)",
		},
		{
			"2.1 exit code 0 of a sidecar does not change a failure", pod,
			history{all, exited("app", 1, 3), exited("side", 1, 0)},
			1,
			"Failed; side Completed(0); init Completed(0) ready; app Error(3)",
		},
		{
			"3 new round keeps only the restart count of a sidecar", podOf(always, "side", "app"),
			history{up(), ran("side", 1, 1), ran("side", 2, 1), ran("app", 1, 1), tick(5), round2},
			5,
			"Pending; side PodInitializing +1; app Error(1)",
		},
		{
			"5.4 unready sidecar does not change the phase", gated,
			history{side, probed("side", 1, startup, good), running("app", 1), probed("side", 1, readiness, bad)},
			1,
			"Running; side Running; app Running ready",
		},
		{
			"2.3 sidecar that never ran stays Waiting", podOf(never, "init", "side", "app"),
			history{up(), ran("init", 1, 1)},
			1,
			"Failed; init Error(1); side PodInitializing; app PodInitializing",
		},
	}.check(t)
}
