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
	stopping := history{live, stopped(5 * time.Second), stop("app", 1, 5*time.Second), sent("app", 1, false)}
	killed := history{stopping, tick(15), kill("app", 1)}
	zero := podOf(spec.RestartNever, "app")
	zero.TerminationGracePeriodSeconds = 0
	decisions{
		{name: "running container is stopped", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 10, want: do{stop("app", 1, 5*time.Second)}},
		{name: "container is stopped with the rest of the grace period", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 12, want: do{stop("app", 1, 3*time.Second)}},
		{name: "container is stopped with at least 2 s", pod: pod, past: history{live, stopped(5 * time.Second)}, now: 14, want: do{stop("app", 1, 2*time.Second)}},
		{
			name: "container is stopped with at least 2 s if the pod has no grace period", pod: zero, past: history{up(), running("app", 1), sandboxLost(1)}, now: 14,
			want: do{lifecycle.StopContainer{Ref: run("app", 1), Grace: 2 * time.Second, Reason: lifecycle.ReasonPodFinished}},
		},
		{name: "init container is stopped", pod: pod, past: history{up(), running("init", 1), stopped(5 * time.Second)}, now: 1, want: do{stop("init", 1, 5*time.Second)}},
		{name: "waits until the end of the grace period", pod: pod, past: stopping, now: 14.999, wake: 15},
		{name: "kills after the grace period", pod: pod, past: stopping, now: 15, want: do{kill("app", 1)}},
		{name: "does not kill again before 10 s", pod: pod, past: killed, now: 24.999, wake: 25},
		{name: "kills again after 10 s", pod: pod, past: killed, now: 25, want: do{kill("app", 1)}},
		{name: "later request shortens the grace period", pod: pod, past: history{stopping, tick(11), stopped(time.Second), stopped(time.Hour)}, now: 11, wake: 12},
		{name: "shortened grace period is at least 2 s", pod: pod, past: history{stopping, tick(10.5), stopped(time.Second)}, now: 11.999, wake: 12},
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
				live, stopped(5 * time.Second), failing(stop("app", 1, 5*time.Second), unavailable), tick(14.5), stop("app", 1, 5*time.Second),
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
			past: history{up(), failing(start("app", 1, 0, 0), unavailable), stopped(time.Second), kill("app", 1), sent("app", 1, true)}, now: 1, wake: 11,
		},
		{
			name: "container of an unanswered start has terminated", pod: pod,
			past: history{up(), failing(start("app", 1, 0, 0), unavailable), stopped(time.Second), kill("app", 1), sent("app", 1, true), exited("app", 1, 137)}, now: 1,
			want: do{removeSandbox(1)},
		},
		{name: "pull is cancelled", pod: pod, past: history{up(), pull("init", 1, 1), stopped(time.Second)}, now: 1, want: do{lifecycle.CancelPull{Container: "init", For: 1}}},
		{
			name: "pull is cancelled once and its end is awaited", pod: pod,
			past: history{up(), pull("app", 1, 1), stopped(time.Second), lifecycle.CancelPull{Container: "app", For: 1}}, now: 99,
		},
		{
			name: "pull is cancelled while another container is stopped", pod: podOf(spec.RestartAlways, "a", "b"),
			past: history{up(), running("a", 1), pull("b", 1, 1), tick(10), stopped(5 * time.Second)}, now: 10,
			want: do{lifecycle.CancelPull{Container: "b", For: 1}, stop("a", 1, 5*time.Second)},
		},
		{name: "sandbox is removed after the containers", pod: pod, past: history{stopping, exited("app", 1, 143)}, now: 10, want: do{removeSandbox(1)}},
		{name: "nothing is left to do after the sandbox was removed", pod: pod, past: history{stopping, exited("app", 1, 143), sandboxRemoved(1)}, now: 10},
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
		{name: "failed removal is retried after 10 s", pod: pod, past: history{two, tick(12), failing(removeContainer("app", 1), oops)}, now: 12, wake: 20},
		{
			name: "previous run is removed before the next start", pod: pod,
			past: history{two, tick(12), failing(removeContainer("app", 1), oops), pulled("app", 3)}, now: 22,
			want: do{removeContainer("app", 1), start("app", 3, 2, 2)},
		},
		{
			name: "terminated runs of init containers are removed", pod: podOf(spec.RestartAlways, "init", "app"),
			past: history{up(), tick(10), ran("init", 1, 1), ran("init", 2, 0), running("app", 1)}, now: 10, want: do{removeContainer("init", 1)},
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
