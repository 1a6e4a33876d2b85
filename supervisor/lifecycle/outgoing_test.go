package lifecycle_test

import (
	"slices"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestRefOf(t *testing.T) {
	ref := run("app", 3)
	for _, a := range []lifecycle.Action{
		lifecycle.StartContainer{Ref: ref},
		lifecycle.StopContainer{Ref: ref},
		lifecycle.KillContainer{Ref: ref},
		lifecycle.RunPostStart{Ref: ref},
		lifecycle.RunPreStop{Ref: ref},
		lifecycle.RemoveContainer{Ref: ref},
	} {
		if got := lifecycle.RefOf(a); got != ref {
			t.Errorf("%T: %v", a, got)
		}
	}
	if got := lifecycle.RefOf(lifecycle.RemovePod{}); got != (lifecycle.Ref{}) {
		t.Errorf("RemovePod: %v", got)
	}
}

// TestStageNewPod checks that a pod for which nothing has been done starts with a staged image.
func TestStageNewPod(t *testing.T) {
	facts := lifecycle.Facts{UID: "uid", Accepted: at(1)}
	facts.Stage("app", lifecycle.Image{ID: "sha256:staged"}, at(1))
	facts = facts.Apply(lifecycle.Issued{Action: startSandbox(1), At: at(1)}).Apply(lifecycle.SandboxStarted{Sandbox: 1, At: at(1)})
	want := lifecycle.StartContainer{Ref: run("app", 1), Sandbox: 1, ImageID: "sha256:staged"}
	if got := lifecycle.Decide(podOf(spec.RestartAlways, "app"), facts, at(2)).Actions; !slices.Equal(got, []lifecycle.Action{want}) {
		t.Errorf("%#v, want %#v", got, want)
	}
}

// TestAddedAgain checks that a container that is added again while it stops runs again after it has stopped.
func TestAddedAgain(t *testing.T) {
	both, one := podOf(spec.RestartNever, "app", "old"), podOf(spec.RestartNever, "app")
	facts := fold(history{up(), running("app", 1), running("old", 1)}).
		Apply(lifecycle.DefinitionChanged{From: both, To: one, At: at(2)}).
		Apply(lifecycle.DefinitionChanged{From: one, To: both, Images: map[string]lifecycle.Image{"old": {ID: "new"}}, At: at(2)})
	if got := lifecycle.Decide(both, facts, at(3)).Actions; len(got) != 1 || lifecycle.RefOf(got[0]) != run("old", 1) {
		t.Errorf("while it runs: %#v, want its stop", got)
	}
	facts = facts.Apply(lifecycle.ContainerExited{Ref: run("old", 1), At: at(4)})
	want := lifecycle.StartContainer{Ref: run("old", 2), Sandbox: 1, Restarts: 1, ImageID: "new"}
	if got := lifecycle.Decide(both, facts, at(5)).Actions; !slices.Equal(got, []lifecycle.Action{want}) {
		t.Errorf("after its exit: %#v, want %#v", got, want)
	}
}

// TestForgetNeedsNoRecord checks that the record of the last run that has one is removed before a removed container is forgotten.
func TestForgetNeedsNoRecord(t *testing.T) {
	both, one := podOf(spec.RestartAlways, "app", "old"), podOf(spec.RestartAlways, "app")
	refused := failed(lifecycle.StartContainer{Ref: run("old", 2)}, lifecycle.Failure{Kind: lifecycle.FailureNotCreated})
	facts := fold(history{up(), running("app", 1), ran("old", 1, 1), pulled("old", 2), issued("old", 2), refused}).
		Apply(lifecycle.DefinitionChanged{From: both, To: one, At: at(2)})
	if got := lifecycle.Decide(one, facts, at(3)).Actions; !slices.Equal(got, []lifecycle.Action{removeContainer("old", 1)}) {
		t.Errorf("%#v, want the removal of the first run", got)
	}
	facts = facts.Apply(lifecycle.Issued{Action: removeContainer("old", 1), At: at(3)}).Apply(lifecycle.ContainerRemoved{Ref: run("old", 1), At: at(4)})
	if got := lifecycle.Decide(one, facts, at(5)).Actions; !slices.Equal(got, []lifecycle.Action{lifecycle.ForgetContainer{Container: "old"}}) {
		t.Errorf("%#v, want ForgetContainer", got)
	}
}
