package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestDecideStop(t *testing.T) {
	pod := podOf(spec.RestartAlways, "init", "app")
	live := history{up(), ran("init", 1, 0), running("app", 1), tick(10)}
	stopping := history{live, stopped(5 * time.Second), stop("app", 1, 5*time.Second), sent("app", 1, false)}
	killed := history{stopping, tick(15), kill("app", 1)}
	zero := podOf(spec.RestartNever, "app")
	zero.TerminationGracePeriodSeconds = 0
	decisions{
		{
			name: "running container is stopped", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 10,
			want: do{stop("app", 1, 5*time.Second)},
		},
		{
			name: "container is stopped with the rest of the grace period", pod: pod, past: history{live, stopped(5 * time.Second)},
			now: 12, want: do{stop("app", 1, 3*time.Second)},
		},
		{
			name: "container is stopped with at least 2 s", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 14,
			want: do{stop("app", 1, 2*time.Second)},
		},
		{
			name: "container is stopped with at least 2 s if the pod has no grace period", pod: zero,
			past: history{up(), running("app", 1), sandboxLost(1)}, now: 14,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{
			name: "init container is stopped", pod: pod, past: history{up(), running("init", 1), stopped(5 * time.Second)}, now: 1,
			want: do{stop("init", 1, 5*time.Second)},
		},
		{name: "waits until the end of the grace period", pod: pod, past: stopping, now: 14.999, wake: 15},
		{name: "kills after the grace period", pod: pod, past: stopping, now: 15, want: do{kill("app", 1)}},
		{name: "does not kill again before 10 s", pod: pod, past: killed, now: 24.999, wake: 25},
		{name: "kills again after 10 s", pod: pod, past: killed, now: 25, want: do{kill("app", 1)}},
		{
			name: "later request shortens the grace period", pod: pod,
			past: history{stopping, tick(11), stopped(time.Second), stopped(time.Hour)}, now: 11, wake: 12,
		},
		{
			name: "shortened grace period is at least 2 s", pod: pod, past: history{stopping, tick(10.5), stopped(time.Second)},
			now: 11.999, wake: 12,
		},
		{name: "force kills at once", pod: pod, past: history{stopping, tick(11), forced}, now: 11, want: do{kill("app", 1)}},
		{name: "force sends no stop signal", pod: pod, past: history{live, forced}, now: 10, want: do{kill("app", 1)}},
		{
			name: "failed stop signal is not retried before 1 s", pod: pod,
			past: history{live, stopped(5 * time.Second), failing(stop("app", 1, 5*time.Second), unavailable)}, now: 10.999, wake: 11,
		},
		{
			name: "failed stop signal is retried after 1 s", pod: pod,
			past: history{live, stopped(5 * time.Second), failing(stop("app", 1, 5*time.Second), unavailable)}, now: 11,
			want: do{stop("app", 1, 5*time.Second)}, wake: 15,
		},
		{
			name: "retry does not extend the deadline", pod: pod,
			past: history{
				live, stopped(5 * time.Second), failing(stop("app", 1, 5*time.Second), unavailable), tick(14.5),
				stop("app", 1, 5*time.Second),
			},
			now: 15, want: do{kill("app", 1)},
		},
		{
			name: "failed SIGKILL is not retried before 1 s", pod: pod,
			past: history{killed, failed(kill("app", 1), oops)}, now: 15.5, wake: 16,
		},
		{
			name: "failed SIGKILL is retried after 1 s", pod: pod,
			past: history{killed, failed(kill("app", 1), oops)}, now: 16, want: do{kill("app", 1)},
		},
		{
			name: "run has terminated if its process is not found", pod: pod,
			past: history{stopping, failed(stop("app", 1, 5*time.Second), lifecycle.Failure{Kind: lifecycle.FailureNotFound})}, now: 10,
			want: do{removeSandbox(1)},
		},
		{name: "waits for a start in progress", pod: pod, past: history{up(), issued("app", 1), stopped(time.Second)}, now: 100},
		{
			name: "container of an unanswered start is killed", pod: pod,
			past: history{up(), failing(start("app", 1, 0, 0), unavailable), stopped(time.Second)}, now: 1, want: do{kill("app", 1)},
		},
		{
			name: "exit of the container of an unanswered start is awaited after SIGKILL", pod: pod,
			past: history{up(), failing(start("app", 1, 0, 0), unavailable), stopped(time.Second), kill("app", 1), sent("app", 1, true)},
			now:  1, wake: 11,
		},
		{
			name: "container of an unanswered start has terminated", pod: pod,
			past: history{
				up(), failing(start("app", 1, 0, 0), unavailable), stopped(time.Second), kill("app", 1), sent("app", 1, true),
				exited("app", 1, 137),
			},
			now:  1,
			want: do{removeSandbox(1)},
		},
		{
			name: "pull is cancelled", pod: pod, past: history{up(), pull("init", 1, 1), stopped(time.Second)}, now: 1,
			want: do{lifecycle.CancelPull{Container: "init", For: 1}},
		},
		{
			name: "pull is cancelled once and its end is awaited", pod: pod,
			past: history{up(), pull("app", 1, 1), stopped(time.Second), lifecycle.CancelPull{Container: "app", For: 1}}, now: 99,
		},
		{
			name: "pull is cancelled while another container is stopped", pod: podOf(spec.RestartAlways, "a", "b"),
			past: history{up(), running("a", 1), pull("b", 1, 1), tick(10), stopped(5 * time.Second)}, now: 10,
			want: do{lifecycle.CancelPull{Container: "b", For: 1}, stop("a", 1, 5*time.Second)},
		},
		{
			name: "sandbox is removed after the containers", pod: pod, past: history{stopping, exited("app", 1, 143)}, now: 10,
			want: do{removeSandbox(1)},
		},
		{
			name: "nothing is left to do after the sandbox was removed", pod: pod,
			past: history{stopping, exited("app", 1, 143), sandboxRemoved(1)}, now: 10,
		},
		{
			name: "deleted pod is removed after the sandbox", pod: pod,
			past: history{live, deleted(time.Second), exited("app", 1, 143), sandboxRemoved(1)}, now: 10,
			want: do{lifecycle.RemovePod{}},
		},
		{
			name: "failed removal of the pod is not retried before 10 s", pod: pod,
			past: history{deleted(time.Second), tick(10), failing(lifecycle.RemovePod{}, oops)}, now: 19.999, wake: 20,
		},
		{
			name: "failed removal of the pod is retried after 10 s", pod: pod,
			past: history{deleted(time.Second), tick(10), failing(lifecycle.RemovePod{}, oops)}, now: 20, want: do{lifecycle.RemovePod{}},
		},
		{
			name: "decision is Removed after the pod was removed", pod: pod,
			past: history{deleted(time.Second), lifecycle.RemovePod{}, happened(func(t lifecycle.Instant) lifecycle.Event {
				return lifecycle.PodRemoved{At: t}
			})},
			now: 20, removed: true,
		},
	}.check(t)
}

func TestDecideRemoveContainer(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	two := history{up(), tick(10), ran("app", 1, 1), ran("app", 2, 1)}
	never := history{up(), tick(10), ran("app", 1, 1), running("app", 2)}
	decisions{
		{name: "previous run is kept while the newest is running", pod: pod, past: never, now: 10},
		{name: "older of two terminated runs is removed", pod: pod, past: two, now: 10, want: do{removeContainer("app", 1)}, wake: 20},
		{name: "removal is not issued again", pod: pod, past: history{two, removeContainer("app", 1)}, now: 10, wake: 20},
		{
			name: "failed removal is retried after 10 s", pod: pod, past: history{two, tick(12), failing(removeContainer("app", 1), oops)},
			now: 12, wake: 20,
		},
		{
			name: "previous run is removed before the next start", pod: pod,
			past: history{two, tick(12), failing(removeContainer("app", 1), oops), pulled("app", 3)}, now: 22,
			want: do{removeContainer("app", 1), start("app", 3, 2, 2)},
		},
		{
			name: "terminated runs of init containers are removed", pod: podOf(spec.RestartAlways, "init", "app"),
			past: history{up(), tick(10), ran("init", 1, 1), ran("init", 2, 0), running("app", 1)}, now: 10,
			want: do{removeContainer("init", 1)},
		},
		{
			name: "runs of a deleted pod are removed with the pod", pod: pod,
			past: history{two, deleted(time.Second), sandboxRemoved(1)}, now: 10, want: do{lifecycle.RemovePod{}},
		},
		{
			name: "newest terminated run of a stopped pod is kept", pod: pod,
			past: history{two, stopped(time.Second), sandboxRemoved(1)}, now: 10, want: do{removeContainer("app", 1)},
		},
	}.check(t)
}

func TestEffectiveGrace(t *testing.T) {
	seconds := func(s float64) *time.Duration {
		d := time.Duration(s * float64(time.Second))
		return &d
	}
	for _, row := range []struct {
		own     spec.Seconds
		request *time.Duration
		want    lifecycle.Grace
	}{
		{30, nil, lifecycle.Grace{Period: 30 * time.Second}},
		{0, nil, lifecycle.Grace{Period: time.Second}},
		{30, seconds(5), lifecycle.Grace{Period: 5 * time.Second}},
		{30, seconds(50), lifecycle.Grace{Period: 50 * time.Second}},
		{30, seconds(0.5), lifecycle.Grace{Period: time.Second}},
		{30, seconds(-7), lifecycle.Grace{Period: time.Second}},
		{30, seconds(0), lifecycle.Grace{Force: true}},
	} {
		if got := lifecycle.EffectiveGrace(&spec.Pod{TerminationGracePeriodSeconds: row.own}, row.request); got != row.want {
			t.Errorf("pod %v, request %v: %+v, want %+v", row.own, row.request, got, row.want)
		}
	}
}

func TestDecideDeadline(t *testing.T) {
	pod := func(policy spec.RestartPolicy, names ...string) *spec.Pod {
		p := with(podOf(policy, names...), hook(lifecycle.PreStop))
		limit := spec.Seconds(99.5) // the pods of these tables are accepted at 1 s
		p.ActiveDeadlineSeconds = &limit
		return p
	}
	app := pod(always, "app")
	live := history{up(), running("app", 1)}
	limit := 30 * time.Second
	ending := history{live, tick(50), stopped(time.Minute), preStop("app", 1, time.Minute, lifecycle.ReasonStopped)}
	evicted := happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodEvicted{Message: "full", At: t} })
	side := pod(never, "side", "app")
	work := history{up(), running("side", 1), ran("app", 1, 0)}
	decisions{
		{name: "7.5 waits until the deadline", pod: app, past: live, now: 100.499, wake: 100.5},
		{
			name: "7.5 fails the pod at the deadline, with the pod's grace period", pod: app, past: live, now: 100.5,
			want: do{failPod(limit)},
		},
		{
			name: "7.5 preStop hook runs after the deadline", pod: app, past: history{live, tick(100.5), failPod(limit)}, now: 100.5,
			want: do{preStop("app", 1, limit, lifecycle.ReasonStopped)},
		},
		{name: "7.5 deadline includes image pulls", pod: app, past: history{up(), pull("app", 1, 1)}, now: 101, want: do{failPod(limit)}},
		{
			name: "7.5 deadline includes the start of the sandbox", pod: app, past: history{startSandbox(1)}, now: 101,
			want: do{failPod(limit)},
		},
		{
			name: "7.5 deadline includes init containers", pod: pod(never, "init", "app"), past: history{up(), running("init", 1)},
			now: 101, want: do{failPod(limit)},
		},
		{
			name: "7.5 deadline does not apply to a finished pod", pod: pod(never, "app"), past: history{up(), ran("app", 1, 0)}, now: 101,
			want: do{removeSandbox(1)},
		},
		{name: "7.5 no deadline if activeDeadlineSeconds is not set", pod: podOf(always, "app"), past: live, now: 1e6},
		{
			name: "7.5 deadline does not apply to a stopped pod without running containers", pod: app,
			past: history{live, tick(100), stopped(limit), exited("app", 1, 0)}, now: 101, want: do{removeSandbox(1)},
		},
		{name: "2.1 waits for the deadline while the pod is stopping", pod: app, past: ending, now: 100.499, wake: 100.5},
		{name: "2.1 fails a stopping pod at the deadline", pod: app, past: ending, now: 100.5, want: do{failPod(limit)}},
		{name: "2.1 does not fail a stopping pod again", pod: app, past: history{ending, tick(100.5), failPod(limit)}, now: 101, wake: 110},
		{
			name: "2.1 deadline applies while sidecars are stopping", pod: side,
			past: history{work, waitForTurn("side", limit, lifecycle.ReasonPodFinished)}, now: 101, want: do{failPod(limit)},
		},
		{
			name: "2.1 deadline does not apply after an eviction", pod: app,
			past: history{live, tick(100), evicted, preStop("app", 1, time.Second, lifecycle.ReasonStopped)}, now: 100.9, wake: 101,
		},
	}.check(t)
}

// TestWaitingMessageOfSandbox checks that every container shows the error of the sandbox until it is ready, also during a retry.
func TestWaitingMessageOfSandbox(t *testing.T) {
	pod := &spec.Pod{Name: "p", InitContainers: []spec.Container{{Name: "setup"}}, Containers: []spec.Container{{Name: "app"}}}
	missing := lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: `volume "conf": configmap "shop" not found`}
	facts := lifecycle.Facts{UID: "u", Accepted: at(0)}
	issue := func(n int) {
		t.Helper()
		facts = facts.Apply(lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: n, Round: n}, At: at(float64(n))})
	}
	waiting := func() *lifecycle.Waiting {
		t.Helper()
		s := lifecycle.StatusOf(pod, facts, at(9))
		if diff := cmp.Diff(s.InitContainerStatuses[0].State.Waiting, s.ContainerStatuses[0].State.Waiting); diff != "" {
			t.Errorf("init container and app container differ:\n%s", diff)
		}
		return s.ContainerStatuses[0].State.Waiting
	}
	issue(1)
	silent := &lifecycle.Waiting{Reason: lifecycle.ReasonPodInitializing}
	if diff := cmp.Diff(silent, waiting()); diff != "" {
		t.Errorf("before the start (-want +got):\n%s", diff)
	}
	stopping := &lifecycle.Waiting{Reason: lifecycle.ReasonPodInitializing, Message: missing.Message}
	facts = facts.Apply(lifecycle.ActionFailed{Action: lifecycle.StartSandbox{Sandbox: 1, Round: 1}, Failure: missing, At: at(2)})
	if diff := cmp.Diff(stopping, waiting()); diff != "" {
		t.Errorf("after a failure (-want +got):\n%s", diff)
	}
	issue(2)
	if diff := cmp.Diff(stopping, waiting()); diff != "" {
		t.Errorf("during the retry (-want +got):\n%s", diff)
	}
	facts = facts.Apply(lifecycle.SandboxStarted{Sandbox: 2, At: at(3)})
	if diff := cmp.Diff(silent, waiting()); diff != "" {
		t.Errorf("ready sandbox (-want +got):\n%s", diff)
	}
}

func TestEvictedStatus(t *testing.T) {
	pod := &spec.Pod{Name: "p", RestartPolicy: spec.RestartAlways, Containers: []spec.Container{{Name: "app"}}}
	const message = `Usage of EmptyDir volume "data" exceeds the limit "1Mi". `
	facts := lifecycle.Facts{UID: "u", Accepted: at(0)}
	ref := lifecycle.Ref{Container: "app", Round: 1, Attempt: 1}
	for _, e := range []lifecycle.Event{
		lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: 1, Round: 1}, At: at(1)},
		lifecycle.SandboxStarted{Sandbox: 1, At: at(1)},
		lifecycle.Issued{Action: lifecycle.StartContainer{Ref: ref, Sandbox: 1}, At: at(1)},
		lifecycle.ContainerStarted{Ref: ref, At: at(1)},
		lifecycle.PodEvicted{Message: message, At: at(2)},
		lifecycle.PodEvicted{Message: "again", At: at(3)},
	} {
		facts = facts.Apply(e)
	}
	target := func(s lifecycle.Status) []lifecycle.Condition {
		var list []lifecycle.Condition
		for _, c := range s.Conditions {
			if c.Type == lifecycle.DisruptionTarget {
				list = append(list, c)
			}
		}
		return list
	}
	// The phase becomes terminal only when no container can run any more.
	if s := lifecycle.StatusOf(pod, facts, at(4)); s.Phase != lifecycle.PhaseRunning || s.Reason != "" || len(target(s)) > 0 {
		t.Errorf("running: %+v", s)
	}
	facts = facts.Apply(lifecycle.ContainerExited{Ref: ref, At: at(5)})
	s := lifecycle.StatusOf(pod, facts, at(6))
	if s.Phase != lifecycle.PhaseFailed || s.Reason != lifecycle.ReasonEvicted || s.Message != message {
		t.Errorf("terminated: %s, %s, %q", s.Phase, s.Reason, s.Message)
	}
	want := []lifecycle.Condition{{Type: lifecycle.DisruptionTarget, Status: "True", Reason: "TerminationByKubelet", Message: message}}
	if diff := cmp.Diff(want, target(s)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestSandboxReadyResetsFailures checks that failures of a sandbox are kept during retries and cleared when it is ready, and
// that the message of a lost sandbox is not a failure of the next one.
func TestSandboxReadyResetsFailures(t *testing.T) {
	facts := lifecycle.Facts{UID: "u", Accepted: at(0)}
	for _, e := range []lifecycle.Event{
		lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: 1, Round: 1}, At: at(1)},
		lifecycle.SandboxStarted{Sandbox: 1, At: at(1)},
		lifecycle.SandboxLost{Sandbox: 1, Message: "killed", At: at(2)},
		lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: 2, Round: 2}, At: at(3)},
	} {
		facts = facts.Apply(e)
	}
	if diff := cmp.Diff(lifecycle.Sandbox{N: 2, Requested: at(3)}, facts.Sandbox); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestShutdownEnded: a pod that was stopped by the shutdown of the host, or of the daemon, is started again by its start. One that a user
// has stopped since stays stopped.
func TestShutdownEnded(t *testing.T) {
	for by, start := range map[string]string{
		lifecycle.ByShutdown: "the start of the host", lifecycle.ByDaemonStop: "the start of the daemon",
	} {
		down := fold(history{up(), running("app", 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.HostShutdown{Grace: time.Second, By: by, At: t}
		})})
		ended := lifecycle.ShutdownEnded{Restart: true, At: at(20)}
		f := down.Apply(ended)
		if want := (lifecycle.Restart{Requested: at(20), By: start}); f.Restart != want || f.Stop != (lifecycle.Stop{}) {
			t.Errorf("after %s: restart %+v, want %+v; stop %+v", by, f.Restart, want, f.Stop)
		}
		f = down.Apply(stopped(time.Second)(at(10))).Apply(ended)
		if f.Restart != (lifecycle.Restart{}) || f.Stop.Requested.IsZero() {
			t.Errorf("stopped by a user after %s: restart %+v, stop %+v", by, f.Restart, f.Stop)
		}
	}
}

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

var (
	collectionRequested happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.CollectionRequested{At: t} }
	podCollected        happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodCollected{At: t} }
)

func TestDecideCollection(t *testing.T) {
	pod := podOf(never, "app")
	collect := lifecycle.CollectPod{}
	succeeded := history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(100), collectionRequested}
	decisions{
		{name: "finished pod is collected", pod: pod, past: succeeded, now: 100, want: do{collect}},
		{name: "collection in progress is not repeated", pod: pod, past: history{succeeded, collect}, now: 100},
		{name: "a failure backs off", pod: pod, past: history{succeeded, failing(collect, oops)}, now: 101, wake: 110},
		{name: "failed collection is retried", pod: pod, past: history{succeeded, failing(collect, oops)}, now: 110, want: do{collect}},
		{name: "collected pod needs nothing", pod: pod, past: history{succeeded, collect, podCollected}, now: 110},
		{
			name: "collected pod is started by a user", pod: pod, past: history{succeeded, collect, podCollected, restartRequested},
			now: 110, want: do{lifecycle.StartAgain{Round: 2}},
		},
		{
			name: "in a new sandbox", pod: pod,
			past: history{succeeded, collect, podCollected, restartRequested, lifecycle.StartAgain{Round: 2}}, now: 110,
			want: do{startSandbox2},
		},
		{
			name: "after the collection", pod: pod, past: history{succeeded, collect, restartRequested, lifecycle.StartAgain{Round: 2}},
			now: 110,
		},
		{
			name: "collected pod is deleted", pod: pod, past: history{succeeded, collect, podCollected, deleted(time.Second)}, now: 110,
			want: do{lifecycle.RemovePod{}},
		},
		{
			name: "pod that a user stopped before it started again keeps its volumes", pod: pod,
			past: history{succeeded, failing(collect, oops), restartRequested, stopped(time.Second)}, now: 200,
		},
	}.check(t)
	if !fold(history{succeeded, collect, podCollected}).Collected() || fold(history{succeeded, collect}).Collected() {
		t.Error("the pod is collected when the collection is complete, and not before")
	}
	f := fold(history{succeeded, collect, podCollected, restartRequested, lifecycle.StartAgain{Round: 2}, startSandbox2})
	if f.Collected() || !f.Collection.Requested.IsZero() {
		t.Errorf("collection of a pod that was started again: %+v", f.Collection)
	}
}

func TestFinished(t *testing.T) {
	pod := podOf(never, "app")
	finished := history{up(), ran("app", 1, 0), tick(50), sandboxRemoved(1)}
	lastly := at(50).Mono
	for name, tt := range map[string]struct {
		past history
		want bool
	}{
		"finished":           {finished, true},
		"its sandbox exists": {history{up(), ran("app", 1, 0)}, false},
		"running":            {history{up(), running("app", 1)}, false},
		"stopped by a user":  {history{up(), running("app", 1), stopped(time.Second), exited("app", 1, 0), sandboxRemoved(1)}, false},
		"is deleted":         {history{finished, deleted(time.Second)}, false},
		"is started again":   {history{finished, restartRequested}, false},
		"exceeded its deadline": {
			history{up(), running("app", 1), failPod(time.Second), exited("app", 1, 0), tick(50), sandboxRemoved(1)}, true,
		},
		"lost its sandbox": {history{up(), tick(20), sandboxLost(1), sandboxRemoved(1)}, false},
		"lost its sandbox first": {
			history{up(), running("app", 1), tick(20), sandboxLost(1), tick(30), sandboxRemoved(1), tick(50), exited("app", 1, 137)}, true,
		},
		"finished before a boot": {
			history{finished, tick(60), happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.Booted{Saved: t, At: t} })},
			true,
		},
	} {
		at := lifecycle.Finished(pod, fold(tt.past))
		if at.IsZero() == tt.want || tt.want && at.Mono != lastly {
			t.Errorf("%s: finished at %v", name, at)
		}
	}
}
