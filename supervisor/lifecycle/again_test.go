package lifecycle_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

var restartRequested happened = func(t lifecycle.Instant) lifecycle.Event {
	return lifecycle.RestartRequested{By: "a test", At: t}
}

// ready2 is the second sandbox, in the round after [lifecycle.StartAgain].
func ready2() history {
	return history{lifecycle.StartAgain{Round: 2}, lifecycle.StartSandbox{Sandbox: 2, Round: 3}, happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.SandboxStarted{Sandbox: 2, At: t}
	})}
}

// TestDecideRestartAfterDeadline checks that a requested restart resets activeDeadlineSeconds.
func TestDecideRestartAfterDeadline(t *testing.T) {
	pod := podOf(never, "app")
	limit := spec.Seconds(60)
	pod.ActiveDeadlineSeconds = &limit
	succeeded := history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(100), restartRequested}
	expired := history{
		up(), running("app", 1), tick(61), failPod(30 * time.Second), stop("app", 1, 30*time.Second), exited("app", 1, 143), sandboxRemoved(1),
		tick(100), restartRequested,
	}
	stopping := lifecycle.StopContainer{Ref: run("app", 1), Grace: 30 * time.Second, Reason: lifecycle.ReasonRestartRequested}
	decisions{
		{name: "2.1 succeeded pod is restarted after its deadline", pod: pod, past: succeeded, now: 100, want: do{lifecycle.StartAgain{Round: 2}}},
		{name: "2.1 pod that exceeded its deadline is restarted", pod: pod, past: expired, now: 100, want: do{lifecycle.StartAgain{Round: 2}}},
		{name: "2.1 deadline does not apply while the pod is stopped for a restart", pod: pod, past: history{up(), running("app", 1), tick(59), restartRequested, stopping}, now: 62, wake: 89},
		{name: "2.1 deadline counts from the restart", pod: pod, past: history{succeeded, ready2(), pull("app", 2, 1)}, now: 159.5, wake: 160},
		{name: "2.1 pod exceeds its deadline again", pod: pod, past: history{succeeded, ready2(), pull("app", 2, 1)}, now: 160, want: do{failPod(30 * time.Second)}},
	}.check(t)
}

// TestDecideRestartWithEphemeral checks that an ephemeral container that ran does not prevent the start of a pod with Never.
func TestDecideRestartWithEphemeral(t *testing.T) {
	pod := podOf(never, "app")
	done := history{up(), running("app", 1), addEphemeral("d"), ran("d", 1, 0), exited("app", 1, 0), sandboxRemoved(1), tick(100), restartRequested}
	decisions{
		{name: "restart is carried out", pod: pod, past: done, now: 100, want: do{lifecycle.StartAgain{Round: 2}}},
		{name: "sandbox is started again", pod: pod, past: history{done, lifecycle.StartAgain{Round: 2}}, now: 100, want: do{startSandbox2}},
		{
			name: "3 lost sandbox is replaced if only an ephemeral container ran", pod: pod,
			past: history{up(), addEphemeral("d"), ran("d", 1, 0), tick(50), sandboxLost(1), sandboxRemoved(1)}, now: 50, want: do{startSandbox(2)},
		},
	}.check(t)
}

// startSandbox2 is the second sandbox after a restart of the pod.
var startSandbox2 = lifecycle.StartSandbox{Sandbox: 2, Round: 3}
