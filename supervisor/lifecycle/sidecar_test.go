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
		{name: "3 it has its turn like any init container", pod: pod, past: up(), now: 1, want: do{pull("side-a", 1, 1)}},
		{name: "3 the next one waits for its start", pod: pod, past: history{up(), pulled("side-a", 1), asked("side-a", 1)}, now: 1},
		{name: "3 not for its end", pod: pod, past: history{up(), a}, now: 1, want: do{pull("init", 1, 1)}},
		{name: "3 an init container behind it runs to its end", pod: pod, past: history{up(), a, running("init", 1)}, now: 1},
		{name: "3 then the next sidecar", pod: pod, past: history{up(), a, ran("init", 1, 0)}, now: 1, want: do{pull("side-b", 1, 1)}},
		{name: "3 then the app", pod: pod, past: ready, now: 1, want: do{pull("app", 1, 1)}},
		{name: "3 a startup probe holds the next one back", pod: probed1, past: history{up(), a}, now: 1},
		{name: "3 until it succeeds", pod: probed1, past: history{up(), a, probed("side-a", 1, startup, good)}, now: 1, want: do{pull("side-b", 1, 1)}},
		{
			name: "3 or fails, which ends the sidecar and not the pod", pod: probed1, past: history{up(), a, tick(5), probed("side-a", 1, startup, bad)}, now: 5,
			want: do{lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonStartupProbe}},
		},
		{
			name: "3 readiness does not hold the next one back", pod: probed1,
			past: history{up(), a, probed("side-a", 1, startup, good), probed("side-a", 1, readiness, bad)}, now: 1, want: do{pull("side-b", 1, 1)},
		},
		{
			name: "3 nor does liveness", pod: probed1,
			past: history{up(), a, tick(5), probed("side-a", 1, startup, good), probed("side-a", 1, liveness, bad)}, now: 5,
			want: do{
				lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonLivenessProbe},
				pull("side-b", 1, 1),
			},
		},
		{name: "3 a postStart hook does", pod: hooked1, past: history{up(), a}, now: 1, want: do{postStart("side-a", 1)}},
		{name: "3 until it is done", pod: hooked1, past: history{up(), a, postStart("side-a", 1), hooked("side-a", 1, lifecycle.PostStart)}, now: 1, want: do{pull("app", 1, 1)}},
		{name: "3 one that ends before the next one's turn begins again", pod: pod, past: history{up(), ran("side-a", 1, 0)}, now: 1, want: do{pull("side-a", 2, 1)}},
		{
			name: "3 with backoff, whatever it said and whatever the policy", pod: pod,
			past: history{up(), tick(10), ran("side-a", 1, 0), ran("side-a", 2, 0), reap("side-a", 1)}, now: 10, wake: 20,
		},
		{
			name: "3 one that ends while a later one has its turn is begun again beside it", pod: pod,
			past: history{up(), ran("side-a", 1, 1), running("init", 1)}, now: 1, want: do{pull("side-a", 2, 1)},
		},
		{
			name: "3 and nobody waits for it any more", pod: pod,
			past: history{up(), ran("side-a", 1, 1), pull("side-a", 2, 1), ran("init", 1, 0)}, now: 1, want: do{pull("side-b", 1, 1)},
		},
		{
			name: "3 not even the app", pod: pod,
			past: history{up(), ran("side-a", 1, 1), pull("side-a", 2, 1), ran("init", 1, 0), running("side-b", 1)}, now: 1, want: do{pull("app", 1, 1)},
		},
		{
			name: "3 it is begun again beside the app too", pod: pod, past: history{ready, running("app", 1), exited("side-b", 1, 0)}, now: 1,
			want: do{pull("side-b", 2, 1)},
		},
		{
			name: "3 and looked after: its start is asked for again", pod: pod,
			past: history{
				ready, running("app", 1), exited("side-b", 1, 0), pulled("side-b", 2), tick(10), failing(start("side-b", 2, 1, 1), away),
			}, now: 11, want: do{start("side-b", 2, 1, 0)},
		},
		{name: "3 an init container whose record is gone is not run again", pod: pod, past: history{up(), a, running("side-b", 1)}, now: 1, want: do{pull("app", 1, 1)}},
		{
			name: "3 a failed one behind a sidecar is tried again by the policy", pod: podOf(spec.RestartAlways, "side-a", "init", "app"),
			past: history{up(), a, ran("init", 1, 1)}, now: 1, want: do{pull("init", 2, 1)},
		},
		{
			name: "3 in a new round it begins anew, at once and with its restarts counted", pod: podOf(spec.RestartAlways, "side-a", "app"),
			past: history{
				up(), tick(10), ran("side-a", 1, 1), ran("side-a", 2, 1), reap("side-a", 1), lost(1), sandboxRemoved(1), startSandbox(2),
				happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SandboxStarted{Sandbox: 2, At: t} }), pulled("side-a", 3),
			},
			now: 11, want: do{lifecycle.StartContainer{
				Ref: lifecycle.Ref{Container: "side-a", Round: 2, Attempt: 3}, Sandbox: 2, Restarts: 2,
			}},
		},
	}.check(t)
}

func TestDecideSidecarEnd(t *testing.T) {
	pod := podOf(spec.RestartNever, "side-a", "init", "side-b", "app")
	up1 := history{up(), running("side-a", 1), ran("init", 1, 0), running("side-b", 1), running("app", 1)}
	waitB, waitA := await("side-b", 9*time.Second, lifecycle.ReasonStopped), await("side-a", 9*time.Second, lifecycle.ReasonStopped)
	stopping := history{up1, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second), waitB, waitA}
	turn := await("side-a", 30*time.Second, lifecycle.ReasonPodFinished)
	finish := func(name string, grace float64) lifecycle.StopContainer {
		return lifecycle.StopContainer{
			Ref: run(name, 1), Grace: time.Duration(grace * float64(time.Second)), Reason: lifecycle.ReasonPodFinished,
		}
	}
	hooks := within(within(podOf(spec.RestartNever, "side-a", "side-b", "app"), "side-a", hook(lifecycle.PreStop)), "side-b", hook(lifecycle.PreStop))
	both := history{up(), running("side-a", 1), running("side-b", 1), running("app", 1)}
	hookOf := func(name string) lifecycle.RunPreStop {
		return preStop(name, 1, 9*time.Second, lifecycle.ReasonStopped)
	}
	waiting := history{both, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second), hookOf("side-b"), hookOf("side-a")}
	decisions{
		{name: "7.3 app containers have their signal first", pod: pod, past: history{up1, tick(10), stopped(9 * time.Second)}, now: 10, want: do{stop("app", 1, 9*time.Second), waitB, waitA}},
		{name: "7.3 and the sidecars wait", pod: pod, past: stopping, now: 12, wake: 19},
		{name: "7.3 then the last one", pod: pod, past: history{stopping, tick(12), exited("app", 1, 0)}, now: 12, want: do{stop("side-b", 1, 7*time.Second)}, wake: 19},
		{
			name: "7.3 then the one before it", pod: pod,
			past: history{stopping, tick(12), exited("app", 1, 0), stop("side-b", 1, 7*time.Second), tick(13), exited("side-b", 1, 0)}, now: 13,
			want: do{stop("side-a", 1, 6*time.Second)},
		},
		{
			name: "7.3 what does not run is not waited for", pod: pod,
			past: history{up(), running("side-a", 1), ran("init", 1, 0), ran("side-b", 1, 1), tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("side-a", 1, 9*time.Second)},
		},
		{
			name: "7.3 nor an init container, which has no turn itself", pod: pod,
			past: history{up(), running("side-a", 1), running("init", 1), tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("init", 1, 9*time.Second), stop("side-a", 1, 9*time.Second)},
		},
		{
			name: "7.3 when the time is over all have their signal, and 2 s", pod: pod, past: stopping, now: 19,
			want: do{kill("app", 1), stop("side-b", 1, 2*time.Second), stop("side-a", 1, 2*time.Second)},
		},
		{
			name: "7.3 force knows no order", pod: pod, past: history{up1, forced}, now: 10,
			want: do{kill("app", 1), kill("side-b", 1), kill("side-a", 1)},
		},
		{
			name: "7.3 preStop hooks begin at the same moment", pod: hooks, past: history{both, tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("app", 1, 9*time.Second), hookOf("side-b"), hookOf("side-a")},
		},
		{
			name: "7.3 the signal waits for the hook and for the turn", pod: hooks,
			past: history{waiting, hooked("side-b", 1, lifecycle.PreStop), hooked("side-a", 1, lifecycle.PreStop)}, now: 12, wake: 19,
		},
		{
			name: "7.3 whichever is later", pod: hooks, past: history{waiting, tick(12), exited("app", 1, 0), hooked("side-a", 1, lifecycle.PreStop)}, now: 12, wake: 19,
		},
		{
			name: "7.3 and has what is left", pod: hooks,
			past: history{waiting, tick(12), exited("app", 1, 0), hooked("side-a", 1, lifecycle.PreStop), tick(14), hooked("side-b", 1, lifecycle.PreStop)}, now: 14,
			want: do{stop("side-b", 1, 5*time.Second)}, wake: 19,
		},
		{name: "7.3 a sidecar that ends meanwhile is not begun again", pod: pod, past: history{stopping, exited("side-b", 1, 1)}, now: 12, wake: 19},
		{name: "7.4 when the app is done the last sidecar ends, with the whole grace", pod: pod, past: history{up1, tick(10), exited("app", 1, 0)}, now: 10, want: do{finish("side-b", 30), turn}},
		{
			name: "7.4 which all of them share", pod: pod, past: history{up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn, tick(15), exited("side-b", 1, 0)}, now: 15,
			want: do{finish("side-a", 25)},
		},
		{
			name: "7.4 and no longer", pod: pod, past: history{up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn}, now: 40,
			want: do{kill("side-b", 1), finish("side-a", 2)},
		},
		{
			name: "7.4 from the first hook on", pod: within(podOf(spec.RestartNever, "side-a", "side-b", "app"), "side-b", hook(lifecycle.PreStop)),
			past: history{both, tick(10), exited("app", 1, 0), preStop("side-b", 1, 30*time.Second, lifecycle.ReasonPodFinished), turn, tick(14), exited("side-b", 1, 0), cancel("side-b", 1, lifecycle.PreStop)},
			now:  14, want: do{finish("side-a", 26)},
		},
		{
			name: "7.4 also if the one behind ends for a reason of its own", pod: podOf(never, "side-a", "side-b", "app"),
			past: history{
				both, tick(5),
				lifecycle.StopContainer{Ref: run("side-b", 1), Grace: 20 * time.Second, Reason: lifecycle.ReasonLivenessProbe},
				tick(10), exited("app", 1, 0), turn, tick(35.5), kill("side-b", 1),
			}, now: 36, wake: 40,
		},
		{
			name: "7.4 an init container that failed for good ends them too", pod: podOf(spec.RestartNever, "side-a", "init", "app"),
			past: history{up(), running("side-a", 1), tick(10), ran("init", 1, 1)}, now: 10, want: do{finish("side-a", 30)},
		},
		{
			name: "7.4 a sidecar that crashes does not", pod: podOf(spec.RestartNever, "side-a", "app"),
			past: history{up(), ran("side-a", 1, 1), running("app", 1)}, now: 10, want: do{pull("side-a", 2, 1)},
		},
		{name: "7.4 then the sandbox goes", pod: pod, past: history{up(), ran("side-a", 1, 137), ran("init", 1, 0), ran("side-b", 1, 0), ran("app", 1, 0)}, now: 1, want: do{removeSandbox(1)}},
		{
			name: "3 a lost sandbox ends them in order too", pod: podOf(spec.RestartAlways, "side-a", "app"),
			past: history{up(), running("side-a", 1), running("app", 1), tick(10), lost(1)}, now: 10,
			want: do{
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
				await("side-a", 30*time.Second, lifecycle.ReasonSandboxChanged),
			},
		},
		{
			name: "3 within one grace period", pod: podOf(spec.RestartAlways, "side-a", "app"),
			past: history{
				up(), running("side-a", 1), running("app", 1), tick(10), lost(1),
				lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonSandboxChanged},
				await("side-a", 30*time.Second, lifecycle.ReasonSandboxChanged), tick(14), exited("app", 1, 0),
			}, now: 14,
			want: do{lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 26 * time.Second, Reason: lifecycle.ReasonSandboxChanged}},
		},
		{
			name: "7.1 a stop shortens it", pod: pod,
			past: history{up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn, tick(11), stopped(3 * time.Second), exited("side-b", 1, 0)}, now: 12,
			want: do{lifecycle.StopContainer{Ref: run("side-a", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{
			name: "7.1 and does not lengthen it", pod: pod,
			past: history{up1, tick(10), exited("app", 1, 0), finish("side-b", 30), turn, tick(11), stopped(time.Hour), exited("side-b", 1, 0)}, now: 12,
			want: do{finish("side-a", 28)},
		},
	}.check(t)
}

func TestStatusSidecars(t *testing.T) {
	pod := podOf(never, "side", "init", "app")
	side := history{up(), running("side", 1)}
	all := history{side, ran("init", 1, 0), running("app", 1)}
	gated := within(podOf(never, "side", "app"), "side", probe(startup), probe(readiness))
	round2 := history{lost(1), sandboxRemoved(1), startSandbox(2)}
	again := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "side", Round: 2, Attempt: 2}, Sandbox: 2, Restarts: 1}
	runsAgain := happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ContainerStarted{Ref: again.Ref, At: t} })
	statuses{
		{"2.1 a pod whose sidecar runs and whose app does not is Pending", pod, side, 1, "Pending; side Running ready; init PodInitializing; app PodInitializing"},
		{"2.1 it runs when the app does", pod, all, 1, "Running; side Running ready; init Completed(0) ready; app Running ready"},
		{"2.1 with a sidecar that waits to run for the first time it is Pending", pod, history{up(), pulled("side", 1), asked("side", 1)}, 1, "Pending; side PodInitializing; init PodInitializing; app PodInitializing"},
		{"2.1 or with one that is not started", gated, side, 1, "Pending; side Running not started; app PodInitializing"},
		{"2.1 before the app has run", gated, history{side, probed("side", 1, startup, good)}, 1, "Pending; side Running; app PodInitializing"},
		{"2.1 not after that", gated, history{side, probed("side", 1, startup, good), running("app", 1), exited("side", 1, 1), running("side", 2)}, 1, "Running; side Running after Error(1) +1 not started; app Running ready"},
		{"2.1 nor while the app is started again, too", gated, history{side, probed("side", 1, startup, good), ran("app", 1, 1), start("app", 2, 1, 1), exited("side", 1, 1), running("side", 2)}, 1, "Running; side Running after Error(1) +1 not started; app Error(1)"},
		{"2.1 but in a new round", within(podOf(always, "side", "app"), "side", probe(startup)), history{side, probed("side", 1, startup, good), ran("app", 1, 3), exited("side", 1, 3), round2, again, runsAgain}, 1, "Pending; side Running after Error(3) +1 not started; app Error(3)"},
		{"2.1 one that begins again does not make it Pending", pod, history{all, exited("side", 1, 0)}, 1, "Running; side Completed(0); init Completed(0) ready; app Running ready"},
		{"4.3 it backs off whatever it said", pod, history{up(), ran("side", 1, 0), running("side", 2), ran("init", 1, 0), running("app", 1), exited("side", 2, 0)}, 2, "Running; side CrashLoopBackOff after Completed(0) +1; init Completed(0) ready; app Running ready"},
		{"2.1 a pod of which only sidecars run on runs", pod, history{all, exited("app", 1, 0)}, 1, "Running; side Running ready; init Completed(0) ready; app Completed(0)"},
		{"2.1 their codes do not decide", pod, history{all, exited("app", 1, 0), exited("side", 1, 137)}, 1, "Succeeded; side Error(137); init Completed(0) ready; app Completed(0)"},
		{"2.1 nor do their successes", pod, history{all, exited("app", 1, 3), exited("side", 1, 0)}, 1, "Failed; side Completed(0); init Completed(0) ready; app Error(3)"},
		{"3 a new round knows nothing of them but their restarts", podOf(always, "side", "app"), history{up(), ran("side", 1, 1), ran("side", 2, 1), ran("app", 1, 1), tick(5), round2}, 5, "Pending; side PodInitializing +1; app Error(1)"},
		{"5.4 a sidecar that is not ready", gated, history{side, probed("side", 1, startup, good), running("app", 1), probed("side", 1, readiness, bad)}, 1, "Running; side Running; app Running ready"},
		{"2.3 one that never ran waits to the end", podOf(never, "init", "side", "app"), history{up(), ran("init", 1, 1)}, 1, "Failed; init Error(1); side PodInitializing; app PodInitializing"},
	}.check(t)
}
