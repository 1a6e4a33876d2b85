package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestDecidePostStart(t *testing.T) {
	const failedHook = lifecycle.ReasonFailedPostStartHook
	pod := with(podOf(spec.RestartAlways, "app", "other"), hook(lifecycle.PostStart))
	both := with(podOf(spec.RestartAlways, "app"), hook(lifecycle.PostStart), hook(lifecycle.PreStop))
	live := history{up(), pulled("other", 1), running("app", 1)}
	asked1 := history{live, postStart("app", 1)}
	gone := lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "gone"}
	bad := history{tick(10), asked1, failed(postStart("app", 1), oops)}
	signal := lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: failedHook}
	decisions{
		{name: "6 it follows the start", pod: pod, past: live, now: 1, want: do{postStart("app", 1)}},
		{name: "6 once, and the next container waits for it", pod: pod, past: asked1, now: 1000},
		{name: "6 until it is done", pod: pod, past: history{asked1, hooked("app", 1, lifecycle.PostStart)}, now: 1, want: do{start("other", 1, 0, 0)}},
		{name: "6 or has failed; its own container then ends, with the whole grace", pod: pod, past: bad, now: 10, want: do{signal, start("other", 1, 0, 0)}},
		{name: "6 through preStop", pod: both, past: bad, now: 10, want: do{preStop("app", 1, 30*time.Second, failedHook)}},
		{name: "6 then the restart policy", pod: pod, past: history{bad, signal, running("other", 1), exited("app", 1, 143)}, now: 10, want: do{pull("app", 2, 1)}},
		{
			name: "6 a restart holds nobody up", pod: pod,
			past: history{up(), ran("app", 1, 1), running("app", 2), postStart("app", 2), pulled("other", 1)}, now: 1, want: do{start("other", 1, 0, 0)},
		},
		{
			name: "6 in a new round it does", pod: pod,
			past: history{
				up(), ran("app", 1, 1), tick(5), lost(1), sandboxRemoved(1), startSandbox(2),
				happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SandboxStarted{Sandbox: 2, At: t} }),
				lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 2}, Sandbox: 2},
				happened(func(t lifecycle.Instant) lifecycle.Event {
					return lifecycle.ContainerStarted{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 2}, At: t}
				}),
				pulled("other", 1),
				lifecycle.RunPostStart{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 2}},
			},
			now: 6,
		},
		{name: "an absent engine is asked again after 1 s", pod: pod, past: history{tick(10), asked1, failed(postStart("app", 1), away)}, now: 10.999, wake: 11},
		{name: "which is no failure of the hook", pod: pod, past: history{tick(10), asked1, failed(postStart("app", 1), away)}, now: 11, want: do{postStart("app", 1)}},
		{name: "and then waited for", pod: pod, past: history{tick(10), asked1, failed(postStart("app", 1), away), postStart("app", 1)}, now: 99},
		{name: "nor is it one that the process is gone, whose end is on its way", pod: pod, past: history{tick(10), asked1, failed(postStart("app", 1), gone)}, now: 10, wake: 11},
		{
			name: "DEVIATIONS 1 a stop interrupts it", pod: pod, past: history{asked1, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second)},
			now: 10, want: do{cancel("app", 1, lifecycle.PostStart)}, wake: 19,
		},
		{
			name: "DEVIATIONS 1 once", pod: pod,
			past: history{asked1, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second), cancel("app", 1, lifecycle.PostStart)}, now: 10, wake: 19,
		},
		{
			name: "DEVIATIONS 2 as early as the preStop hook", pod: both, past: history{asked1, tick(10), stopped(9 * time.Second), preStop("app", 1, 9*time.Second, lifecycle.ReasonStopped)},
			now: 10, want: do{cancel("app", 1, lifecycle.PostStart)}, wake: 19,
		},
		{name: "DEVIATIONS 2 force too", pod: both, past: history{asked1, tick(10), forced, kill("app", 1)}, now: 10, want: do{cancel("app", 1, lifecycle.PostStart)}, wake: 20},
		{name: "the end of the run cancels it", pod: pod, past: history{asked1, running("other", 1), exited("app", 1, 0)}, now: 1, want: do{cancel("app", 1, lifecycle.PostStart), pull("app", 2, 1)}},
		{
			name: "and what came of it does not matter any more", pod: pod,
			past: history{asked1, running("other", 1), exited("app", 1, 0), cancel("app", 1, lifecycle.PostStart), failed(postStart("app", 1), oops)},
			now:  1, want: do{pull("app", 2, 1)},
		},
		{name: "a stopping pod has none", pod: pod, past: history{live, tick(10), stopped(9 * time.Second)}, now: 10, want: do{stop("app", 1, 9*time.Second)}},
		{name: "a container without one has none", pod: podOf(spec.RestartAlways, "app"), past: history{up(), running("app", 1)}, now: 1},
		{name: "nor one with another hook", pod: with(podOf(spec.RestartAlways, "app"), hook(lifecycle.PreStop)), past: history{up(), running("app", 1)}, now: 1},
	}.check(t)
}

// TestAhead: for whose start an app container waits.
func TestAhead(t *testing.T) {
	pod := within(podOf(spec.RestartAlways, "app", "other", "last"), "other", hook(lifecycle.PostStart))
	first := history{up(), running("app", 1)}
	second := history{first, running("other", 1), postStart("other", 1)}
	for _, row := range []struct {
		name      string
		past      history
		container string
		want      string
	}{
		{"the first one's image", history{up(), pull("app", 1, 1)}, "last", "app"},
		{"its start", history{up(), pulled("app", 1), asked("app", 1)}, "other", "app"},
		{"nobody is ahead of itself", history{up(), pull("app", 1, 1)}, "app", ""},
		{"nobody is behind the last", history{first, pull("last", 1, 1)}, "other", ""},
		{"one that runs holds nobody up", history{first}, "last", ""},
		{"a hook does", second, "last", "other"},
		{"until it is done", history{second, hooked("other", 1, lifecycle.PostStart)}, "last", ""},
		{"not that of a restart", history{first, ran("other", 1, 1), running("other", 2), postStart("other", 2)}, "last", ""},
		{"nor an image of one", history{first, ran("other", 1, 1), pull("other", 2, 1)}, "last", ""},
		{"one of another kind waits for nobody", history{up(), pull("app", 1, 1)}, "debug", ""},
	} {
		if got := lifecycle.StartBlockedBy(pod, fold(row.past), row.container); got != row.want {
			t.Errorf("%s: %s waits for %q, want %q", row.name, row.container, got, row.want)
		}
	}
}

func TestDecidePreStop(t *testing.T) {
	pod := with(podOf(spec.RestartAlways, "app"), hook(lifecycle.PreStop))
	zero := with(podOf(spec.RestartNever, "app"), hook(lifecycle.PreStop))
	zero.TerminationGracePeriodSeconds = 0
	hook9 := preStop("app", 1, 9*time.Second, lifecycle.ReasonStopped)
	live := history{up(), running("app", 1), tick(10)}
	asked1 := history{live, stopped(9 * time.Second), hook9}
	done := hooked("app", 1, lifecycle.PreStop)
	signalled := history{asked1, tick(19), stop("app", 1, 2*time.Second)}
	decisions{
		{name: "6 it comes before the stop signal", pod: pod, past: history{live, stopped(9 * time.Second)}, now: 10, want: do{hook9}},
		{name: "6 within what is left of the grace period", pod: pod, past: history{live, stopped(9 * time.Second)}, now: 13, want: do{preStop("app", 1, 6*time.Second, lifecycle.ReasonStopped)}},
		{name: "6 the signal waits for it", pod: pod, past: asked1, now: 18.999999999, wake: 19},
		{name: "6 the rest of the grace period is for the signal", pod: pod, past: history{asked1, tick(13.5), done}, now: 13.5, want: do{stop("app", 1, 5500*time.Millisecond)}},
		{name: "7.1 but 2 s at least", pod: pod, past: history{asked1, tick(18.5), done}, now: 18.5, want: do{stop("app", 1, 2*time.Second)}},
		{name: "6 a failure ends it like a success", pod: pod, past: history{asked1, tick(13), failed(hook9, oops)}, now: 13, want: do{stop("app", 1, 6*time.Second)}},
		{name: "6 when the time is over the signal comes anyway", pod: pod, past: asked1, now: 19, want: do{stop("app", 1, 2*time.Second)}},
		{name: "6 and the hook is cancelled", pod: pod, past: signalled, now: 19, want: do{cancel("app", 1, lifecycle.PreStop)}, wake: 21},
		{name: "6 once", pod: pod, past: history{signalled, cancel("app", 1, lifecycle.PreStop)}, now: 19, wake: 21},
		{
			name: "6 its late outcome changes nothing", pod: pod,
			past: history{signalled, cancel("app", 1, lifecycle.PreStop), failed(hook9, away)}, now: 19, wake: 21,
		},
		{name: "6 the end of the run cancels it too", pod: pod, past: history{asked1, exited("app", 1, 0)}, now: 10, want: do{cancel("app", 1, lifecycle.PreStop), removeSandbox(1)}},
		{
			name: "6 of every container, of a deleted pod too", pod: within(with(podOf(always, "app", "other"), hook(lifecycle.PreStop)), "other", hook(lifecycle.PreStop)),
			past: history{
				up(), running("app", 1), running("other", 1), tick(10), deleted(9 * time.Second), hook9, preStop("other", 1, 9*time.Second, lifecycle.ReasonStopped),
				exited("app", 1, 0), exited("other", 1, 0),
			}, now: 10, want: do{cancel("app", 1, lifecycle.PreStop), cancel("other", 1, lifecycle.PreStop), removeSandbox(1)},
		},
		{name: "7.1 a shorter wish shortens it", pod: pod, past: history{asked1, tick(11), stopped(3 * time.Second)}, now: 11, wake: 14},
		{name: "7.1 and a longer one does not lengthen it", pod: pod, past: history{asked1, tick(11), stopped(time.Hour)}, now: 19, want: do{stop("app", 1, 2*time.Second)}},
		{name: "6 force has none", pod: pod, past: history{live, forced}, now: 10, want: do{kill("app", 1)}},
		{name: "6 and ends a running one", pod: pod, past: history{asked1, forced, kill("app", 1)}, now: 10, want: do{cancel("app", 1, lifecycle.PreStop)}, wake: 20},
		{name: "6 none where no grace is left", pod: pod, past: history{live, stopped(time.Second)}, now: 11, want: do{stop("app", 1, 2*time.Second)}},
		{
			name: "6 nor where there never was one", pod: zero, past: history{live, lost(1)}, now: 10,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{name: "6 none after a natural end", pod: pod, past: history{live, exited("app", 1, 1)}, now: 10, want: do{pull("app", 2, 1)}},
		{
			name: "DEVIATIONS 10 but when the sandbox has changed", pod: pod, past: history{live, lost(1)}, now: 10,
			want: do{preStop("app", 1, 30*time.Second, lifecycle.ReasonSandboxChanged)},
		},
		{
			name: "a stop in the middle of another end does not run it twice, and the first reason counts", pod: pod,
			past: history{live, lost(1), preStop("app", 1, 30*time.Second, lifecycle.ReasonSandboxChanged), tick(12), stopped(5 * time.Second), tick(13), done}, now: 13,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 4 * time.Second, Reason: lifecycle.ReasonSandboxChanged}},
		},
		{name: "an absent engine is asked again after 1 s", pod: pod, past: history{asked1, failed(hook9, away)}, now: 10.999, wake: 11},
		{name: "within what is left", pod: pod, past: history{asked1, failed(hook9, away)}, now: 11, want: do{preStop("app", 1, 8*time.Second, lifecycle.ReasonStopped)}},
		{
			name: "and not for longer", pod: pod, past: history{asked1, tick(18.5), failed(hook9, away)}, now: 19, want: do{stop("app", 1, 2*time.Second)},
		},
		{
			name: "the first request sets the time", pod: pod,
			past: history{asked1, tick(12), failed(hook9, away), preStop("app", 1, time.Hour, lifecycle.ReasonStopped)}, now: 18.9, wake: 19,
		},
		{name: "a start without an outcome has none", pod: pod, past: history{up(), asked("app", 1), stopped(time.Second)}, now: 1},
	}.check(t)
}
