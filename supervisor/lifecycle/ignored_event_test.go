package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestApplyIgnoresStaleEvents checks that events about objects that do not exist or have terminated change nothing.
func TestApplyIgnoresStaleEvents(t *testing.T) {
	notFound := lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "not found"}
	refused := lifecycle.Failure{Kind: lifecycle.FailureNotCreated, Message: "refused"}
	secondSandbox := history{up(), tick(5), sandboxLost(1), sandboxRemoved(1), startSandbox(2)}
	for _, row := range []struct {
		name string
		past history
		late happened
	}{
		{"start of an older sandbox", secondSandbox, func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.9"}, At: t}
		}},
		{"second start of a sandbox", up(), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.SandboxStarted{Sandbox: 1, IPs: []string{"10.0.0.9"}, At: t}
		}},
		{"failure of an older sandbox", secondSandbox, failed(startSandbox(1), oops)},
		{"failure of a ready sandbox", up(), failed(startSandbox(1), oops)},
		{"loss of an older sandbox", secondSandbox, sandboxLost(1)},
		{"second loss of a sandbox", history{up(), tick(5), sandboxLost(1)}, sandboxLost(1)},
		{"loss of a removed sandbox", history{up(), sandboxRemoved(1)}, sandboxLost(1)},
		{"loss of a failed sandbox", history{failing(startSandbox(1), oops)}, sandboxLost(1)},
		{"removal of an older sandbox", secondSandbox, sandboxRemoved(1)[1].(happened)},
		{"second removal of a sandbox", history{up(), sandboxRemoved(1)}, sandboxRemoved(1)[1].(happened)},
		{"failed removal of an older sandbox", secondSandbox, failed(removeSandbox(1), oops)},
		{"failed removal of a removed sandbox", history{up(), sandboxRemoved(1)}, failed(removeSandbox(1), lifecycle.Failure{})},
		{"pull for an unknown container", up(), pulled("x", 0)[1].(happened)},
		{"pull for an older run", history{pulled("app", 1), pull("app", 2, 1)}, pulled("app", 1)[1].(happened)},
		{"second success of a pull", pulled("app", 1), pulled("app", 1)[1].(happened)},
		{"failure of a successful pull", pulled("app", 1), failed(pull("app", 1, 1), oops)},
		{"second failure of a pull", pullFailed("app", 1, 1, "X"), failed(pull("app", 1, 1), oops)},
		{"failure of a CancelPull", history{pull("app", 1, 1)}, failed(lifecycle.CancelPull{Container: "app", For: 1}, oops)},
		{"start of an unknown run", up(), started("app", 1)},
		{"start of an older run", history{ran("app", 1, 1), running("app", 2)}, started("app", 1)},
		{"second start of a run", history{issued("app", 1), started("app", 1)}, started("app", 1)},
		{"start of a terminated run", history{issued("app", 1), exited("app", 1, 1)}, started("app", 1)},
		{"start of a run that could not be created", failing(start("app", 1, 0, 0), refused), started("app", 1)},
		{"failed start of a running container", running("app", 1), failed(start("app", 1, 0, 0), oops)},
		{"failed start of a terminated run", history{issued("app", 1), exited("app", 1, 0)}, failed(start("app", 1, 0, 0), oops)},
		{"second exit of a run", ran("app", 1, 1), exited("app", 1, 0)},
		{"exit of a run that could not be created", failing(start("app", 1, 0, 0), refused), exited("app", 1, 0)},
		{"exit of a run of another round", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 1}, At: t}
		}},
		{"exit of an empty Ref", up(), func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ContainerExited{At: t} }},
		{"second stop signal", history{running("app", 1), sent("app", 1, false)}, sent("app", 1, false)},
		{"second SIGKILL", history{running("app", 1), sent("app", 1, true)}, sent("app", 1, true)},
		{"signal of an empty Ref", up(), func(t lifecycle.Instant) lifecycle.Event { return lifecycle.SignalSent{At: t} }},
		{"process of a terminated run not found", ran("app", 1, 3), failed(kill("app", 1), notFound)},
		{"failed signal of a terminated run", ran("app", 1, 3), failed(kill("app", 1), oops)},
		{"verdict of an older run", history{ran("app", 1, 1), running("app", 2)}, probed("app", 1, liveness, bad)},
		{"verdict of a terminated run", ran("app", 1, 1), probed("app", 1, startup, good)},
		{"second verdict of a startup probe", history{running("app", 1), probed("app", 1, startup, good)}, probed("app", 1, startup, bad)},
		{"verdict of a liveness probe after its failure", history{running("app", 1), probed("app", 1, liveness, bad)}, probed("app", 1, liveness, good)},
		{"older verdict of a readiness probe", history{running("app", 1), tick(200), probed("app", 1, readiness, good)}, probed("app", 1, readiness, bad)},
		{"verdict of an unknown kind", running("app", 1), probed("app", 1, "moodiness", bad)},
		{"failed probe result", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ProbeFailed{ProbeRef: lifecycle.ProbeRef{Ref: run("app", 1)}, At: t}
		}},
		{"probe warning", running("app", 1), func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ProbeWarned{ProbeRef: lifecycle.ProbeRef{Ref: run("app", 1)}, At: t}
		}},
		{"success of a hook that was not issued", running("app", 1), hookDone("app", 1, lifecycle.PreStop)},
		{"failure of a hook that was not issued", running("app", 1), failed(preStop("app", 1, 9, "X"), oops)},
		{"second success of a hook", history{running("app", 1), postStart("app", 1), hookDone("app", 1, lifecycle.PostStart)}, hookDone("app", 1, lifecycle.PostStart)},
		{"failure of a successful hook", history{running("app", 1), postStart("app", 1), hookDone("app", 1, lifecycle.PostStart)}, failed(postStart("app", 1), oops)},
		{"success of a hook of a terminated run", history{running("app", 1), postStart("app", 1), exited("app", 1, 1)}, hookDone("app", 1, lifecycle.PostStart)},
		{"failure of a postStart hook of a terminated run", history{running("app", 1), postStart("app", 1), exited("app", 1, 1)}, failed(postStart("app", 1), oops)},
		{"failure of a preStop hook of a terminated run", history{running("app", 1), preStop("app", 1, 9, "X"), exited("app", 1, 1)}, failed(preStop("app", 1, 9, "X"), oops)},
		{"failure of a CancelHook", history{running("app", 1), postStart("app", 1)}, failed(cancel("app", 1, lifecycle.PostStart), oops)},
		{"second removal of a run", history{ran("app", 1, 1), removeContainer("app", 1), containerRemoved("app", 1)}, containerRemoved("app", 1)},
		{"failed removal of a removed run", history{ran("app", 1, 1), removeContainer("app", 1), containerRemoved("app", 1)}, failed(removeContainer("app", 1), oops)},
		{"second removal of the pod", history{lifecycle.RemovePod{}, podRemoved}, podRemoved},
		{"failed removal of a removed pod", history{lifecycle.RemovePod{}, podRemoved}, failed(lifecycle.RemovePod{}, oops)},
		{"second stop request with a longer grace period", history{stopped(time.Second)}, stopped(time.Hour)},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := fold(row.past)
			after := before.Apply(row.late(at(100)))
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("facts (-before +after):\n%s", diff)
			}
		})
	}
}

func containerRemoved(name string, n int) happened {
	return func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerRemoved{Ref: run(name, n), At: t}
	}
}

var podRemoved happened = func(t lifecycle.Instant) lifecycle.Event { return lifecycle.PodRemoved{At: t} }
