package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestDecideStop(t *testing.T) {
	pod := podOf(spec.RestartAlways, "init", "app")
	live := history{up(), ran("init", 1, 0), running("app", 1), tick(10)}
	told := history{live, stopped(5 * time.Second), stop("app", 1, 5*time.Second), sent("app", 1, false)}
	killed := history{told, tick(15), kill("app", 1)}
	zero := podOf(spec.RestartNever, "app")
	zero.TerminationGracePeriodSeconds = 0
	decisions{
		{name: "what runs is told to stop", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 10, want: do{stop("app", 1, 5*time.Second)}},
		{name: "with what is left of the grace period", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 12, want: do{stop("app", 1, 3*time.Second)}},
		{name: "but with 2 s at least", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 14, want: do{stop("app", 1, 2*time.Second)}},
		{
			name: "also by a pod that has no grace period", pod: zero, past: history{up(), running("app", 1), lost(1)}, now: 14,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{name: "an init container too", pod: pod, past: history{up(), running("init", 1), stopped(5 * time.Second)}, now: 1, want: do{stop("init", 1, 5*time.Second)}},
		{name: "until the end of the grace period nothing more is done", pod: pod, past: told, now: 14.999, wake: 15},
		{name: "then it is killed", pod: pod, past: told, now: 15, want: do{kill("app", 1)}},
		{name: "once in 10 s", pod: pod, past: killed, now: 24.999, wake: 25},
		{name: "and again", pod: pod, past: killed, now: 25, want: do{kill("app", 1)}},
		{name: "a later wish shortens the grace period", pod: pod, past: history{told, tick(11), stopped(time.Second), stopped(time.Hour)}, now: 11, wake: 12},
		{name: "but leaves 2 s", pod: pod, past: history{told, tick(10.5), stopped(time.Second)}, now: 11.999, wake: 12},
		{name: "force kills at once", pod: pod, past: history{told, tick(11), forced}, now: 11, want: do{kill("app", 1)}},
		{name: "without a stop signal", pod: pod, past: history{live, forced}, now: 10, want: do{kill("app", 1)}},
		{
			name: "a signal that could not be sent is sent again after 1 s", pod: pod,
			past: history{live, stopped(5 * time.Second), failing(stop("app", 1, 5*time.Second), away)}, now: 10.999, wake: 11,
		},
		{
			name: "as it was", pod: pod,
			past: history{live, stopped(5 * time.Second), failing(stop("app", 1, 5*time.Second), away)}, now: 11,
			want: do{stop("app", 1, 5*time.Second)}, wake: 15,
		},
		{
			name: "and its deadline holds", pod: pod,
			past: history{
				live, stopped(5 * time.Second), failing(stop("app", 1, 5*time.Second), away), tick(14.5), stop("app", 1, 5*time.Second),
			},
			now: 15, want: do{kill("app", 1)},
		},
		{
			name: "so is a SIGKILL", pod: pod,
			past: history{killed, failed(kill("app", 1), oops)}, now: 15.5, wake: 16,
		},
		{
			name: "after 1 s", pod: pod,
			past: history{killed, failed(kill("app", 1), oops)}, now: 16, want: do{kill("app", 1)},
		},
		{
			name: "a signal to nothing is the end of the run", pod: pod,
			past: history{told, failed(stop("app", 1, 5*time.Second), lifecycle.Failure{Kind: lifecycle.FailureNotFound})}, now: 10,
			want: do{removeSandbox(1)},
		},
		{name: "a start without an outcome is waited for", pod: pod, past: history{up(), asked("app", 1), stopped(time.Second)}, now: 100},
		{
			name: "one that an absent engine did not answer may have happened", pod: pod,
			past: history{up(), failing(start("app", 1, 0, 0), away), stopped(time.Second)}, now: 1, want: do{kill("app", 1)},
		},
		{name: "a pull is cancelled", pod: pod, past: history{up(), pull("init", 1, 1), stopped(time.Second)}, now: 1, want: do{lifecycle.CancelPull{Container: "init", For: 1}}},
		{
			name: "once, and its end is waited for", pod: pod,
			past: history{up(), pull("app", 1, 1), stopped(time.Second), lifecycle.CancelPull{Container: "app", For: 1}}, now: 99,
		},
		{
			name: "a pull beside a run is cancelled while that is told to stop", pod: podOf(spec.RestartAlways, "a", "b"),
			past: history{up(), running("a", 1), pull("b", 1, 1), tick(10), stopped(5 * time.Second)}, now: 10,
			want: do{lifecycle.CancelPull{Container: "b", For: 1}, stop("a", 1, 5*time.Second)},
		},
		{name: "then the sandbox goes", pod: pod, past: history{told, exited("app", 1, 143)}, now: 10, want: do{removeSandbox(1)}},
		{name: "and nothing more happens", pod: pod, past: history{told, exited("app", 1, 143), sandboxRemoved(1)}, now: 10},
		{
			name: "unless the pod was deleted", pod: pod,
			past: history{live, deleted(time.Second), exited("app", 1, 143), sandboxRemoved(1)}, now: 10,
			want: do{lifecycle.RemovePod{}},
		},
		{
			name: "which is tried again after 10 s", pod: pod,
			past: history{deleted(time.Second), tick(10), failing(lifecycle.RemovePod{}, oops)}, now: 19.999, wake: 20,
		},
		{
			name: "if it failed", pod: pod,
			past: history{deleted(time.Second), tick(10), failing(lifecycle.RemovePod{}, oops)}, now: 20, want: do{lifecycle.RemovePod{}},
		},
		{
			name: "and then the pod is gone", pod: pod,
			past: history{deleted(time.Second), lifecycle.RemovePod{}, happened(func(t lifecycle.Instant) lifecycle.Event {
				return lifecycle.PodRemoved{At: t}
			})},
			now: 20, gone: true,
		},
	}.check(t)
}

func TestDecideReap(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	two := history{up(), tick(10), ran("app", 1, 1), ran("app", 2, 1)}
	never := history{up(), tick(10), ran("app", 1, 1), running("app", 2)}
	decisions{
		{name: "while one runs the dead one before it stays", pod: pod, past: never, now: 10},
		{name: "of two dead ones the older goes", pod: pod, past: two, now: 10, want: do{reap("app", 1)}, wake: 20},
		{name: "once", pod: pod, past: history{two, reap("app", 1)}, now: 10, wake: 20},
		{name: "again 10 s after it failed", pod: pod, past: history{two, tick(12), failing(reap("app", 1), oops)}, now: 12, wake: 20},
		{
			name: "and before the start that forgets it", pod: pod,
			past: history{two, tick(12), failing(reap("app", 1), oops), pulled("app", 3)}, now: 22,
			want: do{reap("app", 1), start("app", 3, 2, 2)},
		},
		{
			name: "also of init containers", pod: podOf(spec.RestartAlways, "init", "app"),
			past: history{up(), tick(10), ran("init", 1, 1), ran("init", 2, 0), running("app", 1)}, now: 10, want: do{reap("init", 1)},
		},
		{
			name: "of a deleted pod everything goes in one", pod: pod,
			past: history{two, deleted(time.Second), sandboxRemoved(1)}, now: 10, want: do{lifecycle.RemovePod{}},
		},
		{
			name: "and of a stopped one the newest stays", pod: pod,
			past: history{two, stopped(time.Second), sandboxRemoved(1)}, now: 10, want: do{reap("app", 1)},
		},
	}.check(t)
}
