package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestNothingChanges holds what speaks of something that is over, or never was, against the facts that it must leave alone.
func TestNothingChanges(t *testing.T) {
	gone := lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "gone"}
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "refused"}
	secondSandbox := history{up(), tick(5), lost(1), sandboxRemoved(1), startSandbox(2)}
	for _, row := range []struct {
		name string
		past history
		late happened
	}{
		{"the start of an older sandbox", secondSandbox, func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.9"}, At: t}
		}},
		{"a second start of a sandbox", up(), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.9"}, At: t}
		}},
		{"the failure of an older sandbox", secondSandbox, failed(startSandbox(1), oops)},
		{"the failure of a sandbox that is there", up(), failed(startSandbox(1), oops)},
		{"the loss of an older sandbox", secondSandbox, lost(1)},
		{"a second loss of a sandbox", history{up(), tick(5), lost(1)}, lost(1)},
		{"the loss of a sandbox that was taken away", history{up(), sandboxRemoved(1)}, lost(1)},
		{"the loss of a sandbox that failed", history{failing(startSandbox(1), oops)}, lost(1)},
		{"the removal of an older sandbox", secondSandbox, sandboxRemoved(1)[1].(happened)},
		{"a second removal of a sandbox", history{up(), sandboxRemoved(1)}, sandboxRemoved(1)[1].(happened)},
		{"the failed removal of an older sandbox", secondSandbox, failed(removeSandbox(1), oops)},
		{"the failed removal of a sandbox that is gone", history{up(), sandboxRemoved(1)}, failed(removeSandbox(1), lifecycle.Failure{})},
		{"the pull of an unknown container", up(), pulled("x", 0)[1].(happened)},
		{"the pull for an older run", history{pulled("app", 1), pull("app", 2, 1)}, pulled("app", 1)[1].(happened)},
		{"a second end of a pull", pulled("app", 1), pulled("app", 1)[1].(happened)},
		{"the failure of a pull that has ended", pulled("app", 1), failed(pull("app", 1, 1), oops)},
		{"the failure of a pull that has failed", pullFailed("app", 1, 1, "X"), failed(pull("app", 1, 1), oops)},
		{"the failure to cancel", history{pull("app", 1, 1)}, failed(lifecycle.CancelPull{Container: "app", For: 1}, oops)},
		{"the start of an unknown run", up(), started("app", 1)},
		{"the start of an older run", history{ran("app", 1, 1), running("app", 2)}, started("app", 1)},
		{"a second start of a run", history{asked("app", 1), started("app", 1)}, started("app", 1)},
		{"the start of a run that is over", history{asked("app", 1), exited("app", 1, 1)}, started("app", 1)},
		{"the start of a run that was refused", failing(start("app", 1, 0, 0), refused), started("app", 1)},
		{"the failed start of a run that has started", running("app", 1), failed(start("app", 1, 0, 0), oops)},
		{"the failed start of a run that is over", history{asked("app", 1), exited("app", 1, 0)}, failed(start("app", 1, 0, 0), oops)},
		{"a second end of a run", ran("app", 1, 1), exited("app", 1, 0)},
		{"the end of a run that was refused", failing(start("app", 1, 0, 0), refused), exited("app", 1, 0)},
		{"the end of a run with another round", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 1}, At: t}
		}},
		{"the end of no run", up(), func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ContainerExited{At: t} }},
		{"a second signal", history{running("app", 1), sent("app", 1, false)}, sent("app", 1, false)},
		{"a second SIGKILL", history{running("app", 1), sent("app", 1, true)}, sent("app", 1, true)},
		{"a signal of no run", up(), func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SignalSent{At: t} }},
		{"a signal that a dead run did not get", ran("app", 1, 3), failed(kill("app", 1), gone)},
		{"a signal that a dead run could not be sent", ran("app", 1, 3), failed(kill("app", 1), oops)},
		{"a verdict of an older run", history{ran("app", 1, 1), running("app", 2)}, probed("app", 1, liveness, bad)},
		{"a verdict of a run that has ended", ran("app", 1, 1), probed("app", 1, startup, good)},
		{"a second verdict of a startup probe", history{running("app", 1), probed("app", 1, startup, good)}, probed("app", 1, startup, bad)},
		{"what a liveness probe says after it has failed", history{running("app", 1), probed("app", 1, liveness, bad)}, probed("app", 1, liveness, good)},
		{"an older verdict of a readiness probe", history{running("app", 1), tick(200), probed("app", 1, readiness, good)}, probed("app", 1, readiness, bad)},
		{"a verdict of a kind that there is not", running("app", 1), probed("app", 1, "moodiness", bad)},
		{"an answer that a person is told of", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ProbeFailed{ProbeRef: lifecycle.ProbeRef{Ref: run("app", 1)}, At: t}
		}},
		{"or a warning", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ProbeWarned{ProbeRef: lifecycle.ProbeRef{Ref: run("app", 1)}, At: t}
		}},
		{"the end of a hook that was not asked for", running("app", 1), hooked("app", 1, lifecycle.PreStop)},
		{"the failure of one", running("app", 1), failed(preStop("app", 1, 9, "X"), oops)},
		{"a second end of a hook", history{running("app", 1), postStart("app", 1), hooked("app", 1, lifecycle.PostStart)}, hooked("app", 1, lifecycle.PostStart)},
		{"the failure of a hook that has ended", history{running("app", 1), postStart("app", 1), hooked("app", 1, lifecycle.PostStart)}, failed(postStart("app", 1), oops)},
		{"the end of a hook of a dead run", history{running("app", 1), postStart("app", 1), exited("app", 1, 1)}, hooked("app", 1, lifecycle.PostStart)},
		{"the failure of one of a dead run", history{running("app", 1), postStart("app", 1), exited("app", 1, 1)}, failed(postStart("app", 1), oops)},
		{"or at its other end", history{running("app", 1), preStop("app", 1, 9, "X"), exited("app", 1, 1)}, failed(preStop("app", 1, 9, "X"), oops)},
		{"the failure to cancel a hook", history{running("app", 1), postStart("app", 1)}, failed(cancel("app", 1, lifecycle.PostStart), oops)},
		{"a second removal of a run", history{ran("app", 1, 1), reap("app", 1), reaped("app", 1)}, reaped("app", 1)},
		{"the failed removal of a run that is gone", history{ran("app", 1, 1), reap("app", 1), reaped("app", 1)}, failed(reap("app", 1), oops)},
		{"a second removal of the pod", history{lifecycle.RemovePod{}, podRemoved}, podRemoved},
		{"the failed removal of a pod that is gone", history{lifecycle.RemovePod{}, podRemoved}, failed(lifecycle.RemovePod{}, oops)},
		{"a second wish with a longer grace period", history{stopped(time.Second)}, stopped(time.Hour)},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := fold(row.past)
			after := before.Apply(row.late(at(100)))
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the facts (-before +after):\n%s", diff)
			}
		})
	}
}

func reaped(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerRemoved{Ref: run(name, n), At: t}
	}
}

var podRemoved happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodRemoved{At: t} }
