package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestWhy(t *testing.T) {
	failedExit := lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError}
	sandbox2 := func(message string) history {
		return history{
			tick(5),
			happened(func(t lifecycle.Instant) lifecycle.Event {
				return lifecycle.SandboxLost{Sandbox: 1, Message: message, At: t}
			}),
			sandboxRemoved(1), tick(6), startSandbox(2),
		}
	}
	ran2 := func(name string) history {
		ref := lifecycle.Ref{Container: name, Round: 2, Attempt: 2}
		return history{lifecycle.StartContainer{Ref: ref, Sandbox: 2, Restarts: 1}, happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerStarted{Ref: ref, At: t}
		})}
	}
	endedBy := func(reason lifecycle.Reason, why ...any) history {
		return history{
			up(), running("app", 1), history(why), tick(4),
			lifecycle.StopContainer{Ref: run("app", 1), Reason: reason},
			exited("app", 1, 3), tick(5), running("app", 2),
		}
	}
	ended := func(reason lifecycle.Reason, message string) lifecycle.Cause {
		return lifecycle.Cause{Reason: reason, Message: message, By: run("app", 1), Exit: failedExit, At: at(4)}
	}
	for _, row := range []struct {
		name string
		past history
		want lifecycle.Cause
	}{
		{"none", up(), lifecycle.Cause{}},
		{"a start on its way", asked("app", 1), lifecycle.Cause{}},
		{"the first", history{tick(3), asked("app", 1), tick(4), started("app", 1)}, lifecycle.Cause{Reason: "FirstStart", At: at(3)}},
		{"after a crash", history{up(), running("app", 1), tick(4), exited("app", 1, 3), running("app", 2)}, ended("Error", "")},
		{"after a probe", endedBy(lifecycle.ReasonLivenessProbe, probed("app", 1, liveness, bad)), ended("LivenessProbe", "no good")},
		{"after the other probe", endedBy(lifecycle.ReasonStartupProbe, probed("app", 1, startup, bad)), ended("StartupProbe", "no good")},
		{"after a hook", endedBy(lifecycle.ReasonFailedPostStartHook, failing(postStart("app", 1), oops)), ended("FailedPostStartHook", "oops")},
		{"after a start that failed", history{up(), tick(4), failing(start("app", 1, 0, 0), oops), running("app", 2)}, lifecycle.Cause{
			Reason: "StartError", Message: "oops", By: run("app", 1), Exit: lifecycle.Exit{Code: 128, Reason: "StartError", Message: "oops"}, At: at(4),
		}},
		{"in another sandbox", history{up(), ran("app", 1, 3), sandbox2("killed"), ran2("app")}, lifecycle.Cause{Reason: "SandboxChanged", Message: "killed", At: at(6)}},
		{"which failed", history{up(), ran("app", 1, 3), lost(1), sandboxRemoved(1), tick(6), startSandbox(2), ran2("app")}, lifecycle.Cause{Reason: "SandboxChanged", Message: "killed", At: at(6)}},
		{"of which there is another by now", history{up(), ran("app", 1, 3), sandbox2("killed"), tick(7), ran2("app"), tick(8), startSandbox(3)}, lifecycle.Cause{Reason: "SandboxChanged", At: at(7)}},
		{
			"with all the others",
			history{up(), ran("app", 1, 0), ran("b", 1, 0), running("b", 2), tick(4), exited("b", 2, 42), tick(5), lifecycle.BeginRound{Round: 2, By: run("b", 2)}, ran2("app")},
			lifecycle.Cause{Reason: "RestartingAllContainers", By: run("b", 2), Exit: lifecycle.Exit{Code: 42, Reason: "Error"}, At: at(5)},
		},
		{
			"also when who asked for it runs again",
			history{up(), ran("app", 1, 0), tick(4), ran("b", 1, 42), tick(5), lifecycle.BeginRound{Round: 2, By: run("b", 1)}, ran2("app"), ran2("b")},
			lifecycle.Cause{Reason: "RestartingAllContainers", By: run("b", 1), Exit: lifecycle.Exit{Code: 42, Reason: "Error"}, At: at(5)},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, fold(row.past).Why("app")); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpened(t *testing.T) {
	for _, row := range []struct {
		name string
		past history
		want lifecycle.Opened
	}{
		{"the first round", history{tick(3), startSandbox(1)}, lifecycle.Opened{Round: 1, Reason: "FirstStart", At: at(3)}},
		{"asked for twice", history{tick(3), startSandbox(1), tick(4), startSandbox(1)}, lifecycle.Opened{Round: 1, Reason: "FirstStart", At: at(3)}},
		{"after one that failed", history{failing(startSandbox(1), oops), tick(4), startSandbox(2)}, lifecycle.Opened{Round: 2, Reason: "SandboxChanged", Message: "oops", At: at(4)}},
		{"in place", history{up(), tick(4), lifecycle.BeginRound{Round: 2, By: run("a", 1)}}, lifecycle.Opened{Round: 2, Reason: "RestartingAllContainers", By: run("a", 1), At: at(4)}},
	} {
		if diff := cmp.Diff(row.want, fold(row.past).Opened); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}
