package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

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
		{name: "7.5 fails the pod at the deadline, with the pod's grace period", pod: app, past: live, now: 100.5, want: do{failPod(limit)}},
		{name: "7.5 preStop hook runs after the deadline", pod: app, past: history{live, tick(100.5), failPod(limit)}, now: 100.5, want: do{preStop("app", 1, limit, lifecycle.ReasonStopped)}},
		{name: "7.5 deadline includes image pulls", pod: app, past: history{up(), pull("app", 1, 1)}, now: 101, want: do{failPod(limit)}},
		{name: "7.5 deadline includes the start of the sandbox", pod: app, past: history{startSandbox(1)}, now: 101, want: do{failPod(limit)}},
		{name: "7.5 deadline includes init containers", pod: pod(never, "init", "app"), past: history{up(), running("init", 1)}, now: 101, want: do{failPod(limit)}},
		{name: "7.5 deadline does not apply to a finished pod", pod: pod(never, "app"), past: history{up(), ran("app", 1, 0)}, now: 101, want: do{removeSandbox(1)}},
		{name: "7.5 no deadline if activeDeadlineSeconds is not set", pod: podOf(always, "app"), past: live, now: 1e6},
		{name: "7.5 deadline does not apply to a stopped pod without running containers", pod: app, past: history{live, tick(100), stopped(limit), exited("app", 1, 0)}, now: 101, want: do{removeSandbox(1)}},
		{name: "2.1 waits for the deadline while the pod is stopping", pod: app, past: ending, now: 100.499, wake: 100.5},
		{name: "2.1 fails a stopping pod at the deadline", pod: app, past: ending, now: 100.5, want: do{failPod(limit)}},
		{name: "2.1 does not fail a stopping pod again", pod: app, past: history{ending, tick(100.5), failPod(limit)}, now: 101, wake: 110},
		{name: "2.1 deadline applies while sidecars are stopping", pod: side, past: history{work, waitForTurn("side", limit, lifecycle.ReasonPodFinished)}, now: 101, want: do{failPod(limit)}},
		{name: "2.1 deadline does not apply after an eviction", pod: app, past: history{live, tick(100), evicted, preStop("app", 1, time.Second, lifecycle.ReasonStopped)}, now: 100.9, wake: 101},
	}.check(t)
}
