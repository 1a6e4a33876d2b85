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
	issued1 := history{live, postStart("app", 1)}
	notFound := lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "not found"}
	bad := history{tick(10), issued1, failed(postStart("app", 1), oops)}
	signal := lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: failedHook}
	decisions{
		{name: "6 runs after the start", pod: pod, past: live, now: 1, want: do{postStart("app", 1)}},
		{name: "6 is issued once and delays the next container", pod: pod, past: issued1, now: 1000},
		{
			name: "6 next container starts after the hook succeeded", pod: pod,
			past: history{issued1, hookDone("app", 1, lifecycle.PostStart)}, now: 1, want: do{start("other", 1, 0, 0)},
		},
		{
			name: "6 failed hook stops its container with the whole grace period and the next container starts", pod: pod, past: bad,
			now: 10, want: do{signal, start("other", 1, 0, 0)},
		},
		{
			name: "6 failed hook stops its container through the preStop hook", pod: both, past: bad, now: 10,
			want: do{preStop("app", 1, 30*time.Second, failedHook)},
		},
		{
			name: "6 restart policy applies after a failed hook", pod: pod,
			past: history{bad, signal, running("other", 1), exited("app", 1, 143)}, now: 10, want: do{pull("app", 2, 1)},
		},
		{
			name: "6 hook of a restart does not delay other containers", pod: pod,
			past: history{up(), ran("app", 1, 1), running("app", 2), postStart("app", 2), pulled("other", 1)}, now: 1,
			want: do{start("other", 1, 0, 0)},
		},
		{
			name: "6 hook in a new round delays the next container", pod: pod,
			past: history{
				up(), ran("app", 1, 1), tick(5), sandboxLost(1), sandboxRemoved(1), startSandbox(2),
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
		{
			name: "unavailable engine is not retried before 1 s", pod: pod,
			past: history{tick(10), issued1, failed(postStart("app", 1), unavailable)}, now: 10.999, wake: 11,
		},
		{
			name: "unavailable engine is retried after 1 s", pod: pod,
			past: history{tick(10), issued1, failed(postStart("app", 1), unavailable)}, now: 11, want: do{postStart("app", 1)},
		},
		{
			name: "retried hook is awaited", pod: pod,
			past: history{tick(10), issued1, failed(postStart("app", 1), unavailable), postStart("app", 1)}, now: 99,
		},
		{
			name: "process not found is not a failure of the hook", pod: pod,
			past: history{tick(10), issued1, failed(postStart("app", 1), notFound)}, now: 10, wake: 11,
		},
		{
			name: "deviation 1 stop cancels the hook", pod: pod,
			past: history{issued1, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second)},
			now:  10, want: do{cancel("app", 1, lifecycle.PostStart)}, wake: 19,
		},
		{
			name: "deviation 1 hook is not cancelled again", pod: pod,
			past: history{
				issued1, tick(10), stopped(9 * time.Second), stop("app", 1, 9*time.Second), cancel("app", 1, lifecycle.PostStart),
			},
			now: 10, wake: 19,
		},
		{
			name: "deviation 2 hook is cancelled when the preStop hook starts", pod: both,
			past: history{issued1, tick(10), stopped(9 * time.Second), preStop("app", 1, 9*time.Second, lifecycle.ReasonStopped)},
			now:  10, want: do{cancel("app", 1, lifecycle.PostStart)}, wake: 19,
		},
		{
			name: "deviation 2 force cancels the hook", pod: both, past: history{issued1, tick(10), forced, kill("app", 1)}, now: 10,
			want: do{cancel("app", 1, lifecycle.PostStart)}, wake: 20,
		},
		{
			name: "exit of the container cancels the hook", pod: pod, past: history{issued1, running("other", 1), exited("app", 1, 0)},
			now: 1, want: do{cancel("app", 1, lifecycle.PostStart), pull("app", 2, 1)},
		},
		{
			name: "outcome after the exit of the container is ignored", pod: pod,
			past: history{
				issued1, running("other", 1), exited("app", 1, 0), cancel("app", 1, lifecycle.PostStart), failed(postStart("app", 1), oops),
			},
			now: 1, want: do{pull("app", 2, 1)},
		},
		{
			name: "no hook in a stopping pod", pod: pod, past: history{live, tick(10), stopped(9 * time.Second)}, now: 10,
			want: do{stop("app", 1, 9*time.Second)},
		},
		{name: "no hook without postStart", pod: podOf(spec.RestartAlways, "app"), past: history{up(), running("app", 1)}, now: 1},
		{
			name: "no postStart hook with preStop only", pod: with(podOf(spec.RestartAlways, "app"), hook(lifecycle.PreStop)),
			past: history{up(), running("app", 1)}, now: 1,
		},
	}.check(t)
}

// TestStartBlockedBy checks which app container delays the start of another.
func TestStartBlockedBy(t *testing.T) {
	pod := within(podOf(spec.RestartAlways, "app", "other", "last"), "other", hook(lifecycle.PostStart))
	first := history{up(), running("app", 1)}
	second := history{first, running("other", 1), postStart("other", 1)}
	for _, row := range []struct {
		name      string
		past      history
		container string
		want      string
	}{
		{"image of the first container", history{up(), pull("app", 1, 1)}, "last", "app"},
		{"start of the first container", history{up(), pulled("app", 1), issued("app", 1)}, "other", "app"},
		{"container does not block itself", history{up(), pull("app", 1, 1)}, "app", ""},
		{"later container does not block an earlier one", history{first, pull("last", 1, 1)}, "other", ""},
		{"running container does not block", history{first}, "last", ""},
		{"postStart hook blocks", second, "last", "other"},
		{"completed postStart hook does not block", history{second, hookDone("other", 1, lifecycle.PostStart)}, "last", ""},
		{
			"postStart hook of a restart does not block",
			history{first, ran("other", 1, 1), running("other", 2), postStart("other", 2)},
			"last", "",
		},
		{"pull for a restart does not block", history{first, ran("other", 1, 1), pull("other", 2, 1)}, "last", ""},
		{"ephemeral container is not blocked", history{up(), pull("app", 1, 1)}, "debug", ""},
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
	issued1 := history{live, stopped(9 * time.Second), hook9}
	done := hookDone("app", 1, lifecycle.PreStop)
	signalled := history{issued1, tick(19), stop("app", 1, 2*time.Second)}
	decisions{
		{name: "6 runs before the stop signal", pod: pod, past: history{live, stopped(9 * time.Second)}, now: 10, want: do{hook9}},
		{
			name: "6 limit is the rest of the grace period", pod: pod, past: history{live, stopped(9 * time.Second)}, now: 13,
			want: do{preStop("app", 1, 6*time.Second, lifecycle.ReasonStopped)},
		},
		{name: "6 stop signal waits for the hook", pod: pod, past: issued1, now: 18.999999999, wake: 19},
		{
			name: "6 stop signal gets the rest of the grace period", pod: pod, past: history{issued1, tick(13.5), done}, now: 13.5,
			want: do{stop("app", 1, 5500*time.Millisecond)},
		},
		{
			name: "7.1 stop signal gets at least 2 s", pod: pod, past: history{issued1, tick(18.5), done}, now: 18.5,
			want: do{stop("app", 1, 2*time.Second)},
		},
		{
			name: "6 failed hook is followed by the stop signal", pod: pod, past: history{issued1, tick(13), failed(hook9, oops)}, now: 13,
			want: do{stop("app", 1, 6*time.Second)},
		},
		{
			name: "6 stop signal is sent when the grace period has passed", pod: pod, past: issued1, now: 19,
			want: do{stop("app", 1, 2*time.Second)},
		},
		{
			name: "6 hook is cancelled when the grace period has passed", pod: pod, past: signalled, now: 19,
			want: do{cancel("app", 1, lifecycle.PreStop)}, wake: 21,
		},
		{name: "6 hook is not cancelled again", pod: pod, past: history{signalled, cancel("app", 1, lifecycle.PreStop)}, now: 19, wake: 21},
		{
			name: "6 outcome of a cancelled hook is ignored", pod: pod,
			past: history{signalled, cancel("app", 1, lifecycle.PreStop), failed(hook9, unavailable)}, now: 19, wake: 21,
		},
		{
			name: "6 exit of the container cancels the hook", pod: pod, past: history{issued1, exited("app", 1, 0)}, now: 10,
			want: do{cancel("app", 1, lifecycle.PreStop), removeSandbox(1)},
		},
		{
			name: "6 runs for every container of a deleted pod",
			pod:  within(with(podOf(always, "app", "other"), hook(lifecycle.PreStop)), "other", hook(lifecycle.PreStop)),
			past: history{
				up(), running("app", 1), running("other", 1), tick(10), deleted(9 * time.Second), hook9,
				preStop("other", 1, 9*time.Second, lifecycle.ReasonStopped),
				exited("app", 1, 0), exited("other", 1, 0),
			}, now: 10, want: do{cancel("app", 1, lifecycle.PreStop), cancel("other", 1, lifecycle.PreStop), removeSandbox(1)},
		},
		{
			name: "7.1 later request shortens the grace period of a running hook", pod: pod,
			past: history{issued1, tick(11), stopped(3 * time.Second)}, now: 11, wake: 14,
		},
		{
			name: "7.1 later request does not extend the grace period of a running hook", pod: pod,
			past: history{issued1, tick(11), stopped(time.Hour)}, now: 19, want: do{stop("app", 1, 2*time.Second)},
		},
		{name: "6 no hook with force", pod: pod, past: history{live, forced}, now: 10, want: do{kill("app", 1)}},
		{
			name: "6 force cancels a running hook", pod: pod, past: history{issued1, forced, kill("app", 1)}, now: 10,
			want: do{cancel("app", 1, lifecycle.PreStop)}, wake: 20,
		},
		{
			name: "6 no hook if no grace period is left", pod: pod, past: history{live, stopped(time.Second)}, now: 11,
			want: do{stop("app", 1, 2*time.Second)},
		},
		{
			name: "6 no hook if the pod has no grace period", pod: zero, past: history{live, sandboxLost(1)}, now: 10,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{
			name: "6 no hook after the container exited", pod: pod, past: history{live, exited("app", 1, 1)}, now: 10,
			want: do{pull("app", 2, 1)},
		},
		{
			name: "deviation 10 runs if the sandbox was lost", pod: pod, past: history{live, sandboxLost(1)}, now: 10,
			want: do{preStop("app", 1, 30*time.Second, lifecycle.ReasonSandboxChanged)},
		},
		{
			name: "stop during another termination does not repeat the hook and keeps the reason", pod: pod,
			past: history{
				live, sandboxLost(1), preStop("app", 1, 30*time.Second, lifecycle.ReasonSandboxChanged), tick(12), stopped(5 * time.Second),
				tick(13), done,
			},
			now:  13,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 4 * time.Second, Reason: lifecycle.ReasonSandboxChanged}},
		},
		{
			name: "unavailable engine is not retried before 1 s", pod: pod, past: history{issued1, failed(hook9, unavailable)}, now: 10.999,
			wake: 11,
		},
		{
			name: "unavailable engine is retried with the rest of the grace period", pod: pod,
			past: history{issued1, failed(hook9, unavailable)}, now: 11,
			want: do{preStop("app", 1, 8*time.Second, lifecycle.ReasonStopped)},
		},
		{
			name: "no retry after the grace period", pod: pod, past: history{issued1, tick(18.5), failed(hook9, unavailable)}, now: 19,
			want: do{stop("app", 1, 2*time.Second)},
		},
		{
			name: "retry does not change the start of the grace period", pod: pod,
			past: history{issued1, tick(12), failed(hook9, unavailable), preStop("app", 1, time.Hour, lifecycle.ReasonStopped)}, now: 18.9,
			wake: 19,
		},
		{name: "no hook for a start without an outcome", pod: pod, past: history{up(), issued("app", 1), stopped(time.Second)}, now: 1},
	}.check(t)
}
