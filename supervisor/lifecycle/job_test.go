package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// job returns a pod with a backoffLimit.
func job(policy spec.RestartPolicy, limit int32, names ...string) *spec.Pod {
	p := podOf(policy, names...)
	p.BackoffLimit = &limit
	return p
}

// TestDecideBackoffLimit checks which exits count for backoffLimit, and when the pod fails. The scenarios have the delays.
func TestDecideBackoffLimit(t *testing.T) {
	once := job(onFailure, 0, "app", "other")
	fail := do{lifecycle.FailPod{
		Reason: lifecycle.ReasonBackoffLimit, Message: "Job has reached the specified backoff limit",
		Grace: lifecycle.EffectiveGrace(once, nil).Period,
	}}
	live := history{up(), running("app", 1), running("other", 1)}
	stopOf := func(why lifecycle.Reason) lifecycle.Action {
		return lifecycle.StopContainer{Ref: run("app", 1), Reason: why}
	}
	again := do{pull("app", 2, 1)}
	oneUp := history{up(), running("other", 1), pulled("app", 1)}
	cannotCreate := lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "no"}
	notFound := lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no"}
	decisions{
		{now: 1, name: "an exit with a code counts", pod: once, past: history{live, exited("app", 1, 1)}, want: fail},
		{name: "success does not", pod: once, past: history{live, exited("app", 1, 0)}},
		{
			name: "an OOM kill does", pod: job(onFailure, 0, "init", "app"),
			past: history{up(), running("init", 1), exitedFor("init", 1, 137, lifecycle.ReasonOOMKilled)}, want: fail,
		},
		{
			name: "an OOM kill in an init container does, whatever its exit code", pod: job(onFailure, 0, "init", "app"),
			past: history{up(), running("init", 1), exitedFor("init", 1, 0, lifecycle.ReasonOOMKilled)}, want: fail,
		},
		{
			name: "an OOM kill in an app container that succeeds does not", pod: once,
			past: history{live, exitedFor("app", 1, 0, lifecycle.ReasonOOMKilled)},
		},
		{name: "a failed start counts", pod: once, past: history{oneUp, failing(start("app", 1, 0, 0), oops)}, want: fail},
		{
			now: 1, name: "a failed start counts once", pod: job(onFailure, 1, "app", "other"),
			past: history{oneUp, failing(start("app", 1, 0, 0), oops), failed(start("app", 1, 0, 0), oops), exited("app", 1, 128)},
			want: again,
		},
		{
			now: 1, name: "a failed creation does not", pod: once,
			past: history{oneUp, failing(start("app", 1, 0, 0), cannotCreate)}, wake: 11,
		},
		{
			now: 1, name: "an unavailable engine does not", pod: once,
			past: history{oneUp, failing(start("app", 1, 0, 0), unavailable)}, wake: 2,
		},
		{
			name: "a container that its liveness probe stops and that is not found then does", pod: once,
			past: history{live, failing(stopOf(lifecycle.ReasonLivenessProbe), notFound)}, want: fail,
		},
		{
			now: 1, name: "a lost container does not", pod: once,
			past: history{live, exitedFor("app", 1, 137, lifecycle.ReasonStatusUnknown)}, want: again,
		},
		{
			name: "a container that its liveness probe stops does, whatever its exit code", pod: once,
			past: history{live, stopOf(lifecycle.ReasonLivenessProbe), exited("app", 1, 0)}, want: fail,
		},
		{
			now: 1, name: "a container that is replaced does not", pod: once,
			past: history{live, stopOf(lifecycle.ReasonDefinitionChanged), exited("app", 1, 143)}, want: again,
		},
		{
			name: "failures of all containers count", pod: job(onFailure, 1, "app", "other"),
			past: history{live, exited("app", 1, 1), exited("other", 1, 1)}, want: fail,
		},
		{
			name: "a pod that is not retried fails if the container has a restart policy of its own", want: fail,
			pod: with(job(never, 0, "app", "other"), own(onFailure)), past: history{live, exited("app", 1, 1)},
		},
		{
			name: "a pod that is not retried fails if the container has restart rules", want: fail,
			pod: with(job(never, 0, "app", "other"), own(never, rule("Restart", "In", 1))), past: history{live, exited("app", 1, 1)},
		},
		{
			name: "a pod that is not retried finishes by itself", pod: job(never, 0, "app", "other"),
			past: history{live, exited("app", 1, 1)},
		},
		{
			name: "a pod that is stopped does not fail", pod: once, past: history{live, exited("app", 1, 1), stopped(0)},
			want: do{stop("other", 1, 2e9)},
		},
		{
			name: "a requested restart resets the count", pod: once,
			past: history{
				live, exited("app", 1, 1), exited("other", 1, 0),
				happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.RestartRequested{By: "a test", At: t} }),
				removeSandbox(1), sandboxRemoved(1),
				lifecycle.StartAgain{Round: 2},
			},
			want: do{lifecycle.StartSandbox{Sandbox: 2, Round: 3}}, now: 10,
		},
	}.check(t)
}

// TestBackoffLimitAfterShutdown: failures before the shutdown of the host or of the daemon count after it.
func TestBackoffLimitAfterShutdown(t *testing.T) {
	for _, by := range []string{lifecycle.ByShutdown, lifecycle.ByDaemonStop} {
		down := happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.HostShutdown{Grace: time.Second, By: by, At: t}
		})
		start := happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ShutdownEnded{Restart: true, At: t} })
		f := fold(history{
			up(), running("app", 1), exited("app", 1, 1), down, removeSandbox(1), sandboxRemoved(1), start, lifecycle.StartAgain{Round: 2},
		})
		if n := f.Container("app").Failures; n != 1 {
			t.Errorf("failures after %s: %d, want 1", by, n)
		}
	}
}

// TestRetryAfterLostSandbox tests that a container that is lost with the sandbox does not cancel the back-off of another one that has
// failed.
func TestRetryAfterLostSandbox(t *testing.T) {
	pod := job(never, 3, "a", "b")
	for i := range pod.Containers {
		pod.Containers[i].RestartPolicy = never
		pod.Containers[i].RestartPolicyRules = []spec.RestartRule{{
			Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "NotIn", Values: []int32{0}},
		}}
	}
	lostA := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: run("a", 1), Exit: lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown}, At: t}
	})
	f := fold(history{up(), running("a", 1), running("b", 1), tick(4), sandboxLost(1), lostA, tick(5), exited("b", 1, 1)})
	if d := lifecycle.Decide(pod, f, at(5)); len(d.Actions) > 0 || d.Wake != at(15) {
		t.Errorf("after the failure: %+v at %v, want nothing before the back-off", d.Actions, d.Wake)
	}
	if d := lifecycle.Decide(pod, f, at(15)); len(d.Actions) == 0 {
		t.Error("after the back-off nothing is done")
	}
}
