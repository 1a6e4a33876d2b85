package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestConditions(t *testing.T) {
	pod := podOf(spec.RestartNever, "init-a", "init-b", "x", "y")
	inits := history{ran("init-a", 1, 0), ran("init-b", 1, 0)}
	for _, row := range []struct {
		name string
		past history
		want string // sandbox; initialized; containers ready
	}{
		{"nothing started", nil, "False; False ContainersNotInitialized [init-a init-b]; False ContainersNotReady [x y]"},
		{"sandbox is ready", up(), "True; False ContainersNotInitialized [init-a init-b]; False ContainersNotReady [x y]"},
		{"first init container completed", history{up(), ran("init-a", 1, 0)}, "True; False ContainersNotInitialized [init-b]; False ContainersNotReady [x y]"},
		{"all init containers completed", history{up(), inits}, "True; True; False ContainersNotReady [x y]"},
		{"one app container ready", history{up(), inits, running("y", 1)}, "True; True; False ContainersNotReady [x]"},
		{"all app containers ready", history{up(), inits, running("x", 1), running("y", 1)}, "True; True; True"},
		{"sandbox lost", history{up(), inits, running("x", 1), running("y", 1), sandboxLost(1)}, "False; True; True"},
		{"pod succeeded", history{up(), inits, ran("x", 1, 0), ran("y", 1, 0)}, "True; True PodCompleted; False PodCompleted"},
		{"pod failed", history{up(), inits, ran("x", 1, 0), ran("y", 1, 1)}, "True; True; False PodFailed"},
		{"init container failed", history{up(), ran("init-a", 1, 1)}, "True; False ContainersNotInitialized [init-a init-b]; False PodFailed"},
		{"app container is restarting", history{up(), ran("x", 1, 1), issued("x", 2)}, "True; True; False ContainersNotReady [x y]"},
		{"image of an app container is being pulled", history{up(), inits, pull("x", 1, 1)}, "True; True; False ContainersNotReady [x y]"},
	} {
		s := lifecycle.StatusOf(pod, fold(row.past), at(5))
		var got []string
		for _, c := range s.Conditions[1:4] {
			_, names, _ := strings.Cut(c.Message, ": ")
			got = append(got, strings.TrimSpace(strings.Join([]string{c.Status, string(c.Reason), names}, " ")))
		}
		if text := strings.ReplaceAll(strings.Join(got, "; "), "  ", " "); text != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, text, row.want)
		}
	}
}

func TestSince(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	first := lifecycle.StatusOf(pod, fold(nil), at(1)).Since(nil, at(1.9))
	second := lifecycle.StatusOf(pod, fold(up()), at(5)).Since(first.Conditions, at(5))
	want := map[lifecycle.ConditionType]time.Time{
		lifecycle.PodScheduled: at(1).Wall, lifecycle.PodReadyToStartContainers: at(5).Wall, lifecycle.PodInitialized: at(1).Wall,
		lifecycle.ContainersReady: at(1).Wall, lifecycle.PodReady: at(1).Wall,
	}
	for _, c := range second.Conditions {
		if !c.LastTransitionTime.Equal(want[c.Type]) {
			t.Errorf("%s changed at %v, want %v", c.Type, c.LastTransitionTime, want[c.Type])
		}
	}
	if first.Conditions[1].Status != "False" || second.Conditions[1].Status != "True" {
		t.Error("earlier conditions were changed")
	}
}

// TestOptionalConditions checks the conditions that not every pod has, and their order.
func TestOptionalConditions(t *testing.T) {
	gated := podOf(always, "app")
	gated.ReadinessGates = []spec.ReadinessGate{{ConditionType: "example.com/b"}, {ConditionType: "example.com/a"}}
	side := within(podOf(always, "side", "init", "y", "x"), "side", probe(startup), probe(readiness))
	rules := with(podOf(always, "app", "other"), own(never, rule(restartAll, "In", 42)))
	within(rules, "other", own(never, rule(again, "In", 42)))
	live := history{up(), running("app", 1)}
	sideUp := history{up(), running("side", 1), probed("side", 1, startup, good)}
	const noGate = `corresponding condition of pod readiness gate "example.com/%s" does not exist.`
	const closed = `the status of pod readiness gate "example.com/b" is not "True", but False`
	for _, row := range []struct {
		name string
		pod  *spec.Pod
		past history
		want string // starting with Initialized
	}{
		{"2.2 conditions of readiness gates do not exist", gated, live, "Initialized True; ContainersReady True; Ready False ReadinessGatesNotReady " + strings.ReplaceAll(noGate, "%s", "b") + ", " + strings.ReplaceAll(noGate, "%s", "a")},
		{"2.2 condition of a readiness gate is False", gated, history{live, setCondition("example.com/a", "True"), setCondition("example.com/b", "False")}, "Initialized True; ContainersReady True; Ready False ReadinessGatesNotReady " + closed + "; example.com/a True Why because; example.com/b False Why because"},
		{"2.2 conditions of readiness gates are True", gated, history{live, setCondition("example.com/a", "True"), setCondition("example.com/b", "True")}, "Initialized True; ContainersReady True; Ready True; example.com/a True Why because; example.com/b True Why because"},
		{"2.2 unready containers take precedence over readiness gates", gated, up(), "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False ContainersNotReady containers with unready status: [app]"},
		{"2.2 sidecar is not started", side, history{up(), running("side", 1)}, "Initialized False ContainersNotInitialized containers with incomplete status: [side init]; ContainersReady False ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready status: [side y x]"},
		{"2.2 sidecar is started, init container is not completed", side, sideUp, "Initialized False ContainersNotInitialized containers with incomplete status: [init]; ContainersReady False ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready status: [side y x]"},
		{"2.2 init containers completed, app containers not ready", side, history{sideUp, ran("init", 1, 0)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready status: [side y x]"},
		{"2.2 unready sidecar makes the pod unready", side, history{sideUp, ran("init", 1, 0), running("x", 1), running("y", 1)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [side]; Ready False ContainersNotReady containers with unready status: [side]"},
		{"2.2 sidecar and app containers ready", side, history{sideUp, ran("init", 1, 0), running("x", 1), running("y", 1), probed("side", 1, readiness, good)}, "Initialized True; ContainersReady True; Ready True"},
		{"2.2 AllContainersRestarting is present with a RestartAllContainers rule", rules, history{live, running("other", 1)}, "Initialized True; ContainersReady True; Ready True; AllContainersRestarting False"},
		{"4.2 AllContainersRestarting is true while all containers restart", rules, history{live, running("other", 1), exited("app", 1, 42)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False ContainersNotReady containers with unready status: [app]; AllContainersRestarting True RestartAllContainersStarted container exited with restart policy rule"},
		{"2.2 AllContainersRestarting of a succeeded pod", rules, history{live, running("other", 1), exited("app", 1, 0), exited("other", 1, 0)}, "Initialized True PodCompleted; ContainersReady False PodCompleted; Ready False PodCompleted; AllContainersRestarting False PodCompleted"},
		{"2.2 AllContainersRestarting of a failed pod", rules, history{live, running("other", 1), exited("app", 1, 1), exited("other", 1, 0)}, "Initialized True; ContainersReady False PodFailed; Ready False PodFailed; AllContainersRestarting False PodFailed"},
		{"4.2 AllContainersRestarting is false after an exit that matches no rule", rules, history{live, running("other", 1), exited("other", 1, 42)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [other]; Ready False ContainersNotReady containers with unready status: [other]; AllContainersRestarting False"},
		{"4.2 AllContainersRestarting is false in a stopping pod", rules, history{live, running("other", 1), exited("app", 1, 42), stopped(time.Minute)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False ContainersNotReady containers with unready status: [app]; AllContainersRestarting False"},
		{"4.2 Initialized stays true after a restart of all containers", within(rules, "other", own(never)), history{live, running("other", 1), exited("app", 1, 42), exited("other", 1, 0), lifecycle.StartRound{Round: 2}}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app other]; Ready False ContainersNotReady containers with unready status: [app other]; AllContainersRestarting False"},
		{"deviation 20 unavailable engine does not change conditions", podOf(always, "app"), history{live, func() happened { return engineUnavailable }()}, "Initialized True; ContainersReady True; Ready True"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, c := range lifecycle.StatusOf(row.pod, fold(row.past), at(60)).Conditions[2:] {
				words := []string{string(c.Type), c.Status, string(c.Reason), c.Message}
				got = append(got, strings.TrimSpace(strings.ReplaceAll(strings.Join(words, " "), "  ", " ")))
			}
			if text := strings.Join(got, "; "); text != row.want {
				t.Errorf("conditions\n got %s\nwant %s", text, row.want)
			}
		})
	}
}

// TestInitializedStaysTrue stops a pod between the start of its last sidecar and the start of its app container.
func TestInitializedStaysTrue(t *testing.T) {
	pod := podOf(spec.RestartNever, "side", "x")
	past := history{up(), stopped(10 * time.Second), running("side", 1)}
	first := lifecycle.StatusOf(pod, fold(past), at(2)).Since(nil, at(2))
	past = append(past, exited("side", 1, 0))
	want := first.Conditions[2]
	if want.Type != lifecycle.PodInitialized || want.Status != "True" {
		t.Fatalf("running sidecar: %+v", want)
	}
	if got := lifecycle.StatusOf(pod, fold(past), at(9)).Since(first.Conditions, at(9)).Conditions[2]; got != want {
		t.Errorf("terminated sidecar: %+v, want %+v", got, want)
	}
	never := lifecycle.StatusOf(pod, fold(up()), at(2)).Since(nil, at(2)).Conditions[2]
	if got := lifecycle.StatusOf(pod, fold(past), at(9)).Since([]lifecycle.Condition{never}, at(9)).Conditions[2]; got.Status != "False" {
		t.Errorf("pod that was not initialized before: %+v", got)
	}
}

// TestSidecarDiesBeforeFirstApp has a sidecar that dies while the last init container runs: an app container may start, but the pod is not
// initialized before it has.
func TestSidecarDiesBeforeFirstApp(t *testing.T) {
	pod := podOf(spec.RestartAlways, "side", "init", "x")
	past := history{up(), running("side", 1), issued("init", 1), started("init", 1), exited("side", 1, 1), exited("init", 1, 0)}
	for _, row := range []struct {
		name string
		past history
		want string
	}{
		{"init container completed", past, "False"},
		{"image of the app container is being pulled", history{past, pull("x", 1, 1)}, "False"},
		{"pull was cancelled", history{past, pull("x", 1, 1), lifecycle.CancelPull{Container: "x", For: 1}}, "False"},
		{"app container is starting", history{past, pulled("x", 1), issued("x", 1)}, "False"},
		{"app container started", history{past, pulled("x", 1), issued("x", 1), started("x", 1)}, "True"},
		{"sidecar started again", history{past, pull("x", 1, 1), running("side", 2)}, "True"},
	} {
		if got := lifecycle.StatusOf(pod, fold(row.past), at(5)).Conditions[2]; got.Type != lifecycle.PodInitialized || got.Status != row.want {
			t.Errorf("%s: %+v, want %s", row.name, got, row.want)
		}
	}
}

// TestConditionsAreBounded sets more conditions than a pod can have.
func TestConditionsAreBounded(t *testing.T) {
	facts := fold(nil)
	for i := range 100 {
		kind := lifecycle.ConditionType("example.com/" + strings.Repeat("x", i))
		facts = facts.Apply(lifecycle.ConditionSet{Type: kind, Status: "True", At: at(2)})
	}
	if n := len(facts.Conditions); n != 64 {
		t.Fatalf("%d conditions, want 64", n)
	}
	before := text(facts)
	after := facts.Apply(lifecycle.ConditionSet{Type: "example.com/", Status: "False", At: at(3)})
	if after.Conditions["example.com/"].Status != "False" || len(after.Conditions) != 64 {
		t.Errorf("existing condition was not updated: %v", after.Conditions)
	}
	if text(facts) != before {
		t.Error("earlier facts were changed")
	}
}
