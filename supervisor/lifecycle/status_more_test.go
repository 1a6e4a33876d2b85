package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestStatusSidecars(t *testing.T) {
	pod := podOf(never, "side", "init", "app")
	side := history{up(), running("side", 1)}
	all := history{side, ran("init", 1, 0), running("app", 1)}
	gated := within(podOf(never, "side", "app"), "side", probe(startup), probe(readiness))
	round2 := history{lost(1), sandboxRemoved(1), startSandbox(2)}
	again := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "side", Round: 2, Attempt: 2}, Sandbox: 2, Restarts: 1}
	runsAgain := happened(func(t lifecycle.Instant) lifecycle.Event { return lifecycle.ContainerStarted{Ref: again.Ref, At: t} })
	statuses{
		{"2.1 a pod whose sidecar runs and whose app does not is Pending", pod, side, 1, "Pending; side Running ready; init PodInitializing; app PodInitializing"},
		{"2.1 it runs when the app does", pod, all, 1, "Running; side Running ready; init Completed(0) ready; app Running ready"},
		{"2.1 with a sidecar that waits to run for the first time it is Pending", pod, history{up(), pulled("side", 1), asked("side", 1)}, 1, "Pending; side PodInitializing; init PodInitializing; app PodInitializing"},
		{"2.1 or with one that is not started", gated, side, 1, "Pending; side Running not started; app PodInitializing"},
		{"2.1 before the app has run", gated, history{side, probed("side", 1, startup, good)}, 1, "Pending; side Running; app PodInitializing"},
		{"2.1 not after that", gated, history{side, probed("side", 1, startup, good), running("app", 1), exited("side", 1, 1), running("side", 2)}, 1, "Running; side Running after Error(1) +1 not started; app Running ready"},
		{"2.1 nor while the app is started again, too", gated, history{side, probed("side", 1, startup, good), ran("app", 1, 1), start("app", 2, 1, 1), exited("side", 1, 1), running("side", 2)}, 1, "Running; side Running after Error(1) +1 not started; app Error(1)"},
		{"2.1 but in a new round", within(podOf(always, "side", "app"), "side", probe(startup)), history{side, probed("side", 1, startup, good), ran("app", 1, 3), exited("side", 1, 3), round2, again, runsAgain}, 1, "Pending; side Running after Error(3) +1 not started; app Error(3)"},
		{"2.1 one that begins again does not make it Pending", pod, history{all, exited("side", 1, 0)}, 1, "Running; side Completed(0); init Completed(0) ready; app Running ready"},
		{"4.3 it backs off whatever it said", pod, history{up(), ran("side", 1, 0), running("side", 2), ran("init", 1, 0), running("app", 1), exited("side", 2, 0)}, 2, "Running; side CrashLoopBackOff after Completed(0) +1; init Completed(0) ready; app Running ready"},
		{"2.1 a pod of which only sidecars run on runs", pod, history{all, exited("app", 1, 0)}, 1, "Running; side Running ready; init Completed(0) ready; app Completed(0)"},
		{"2.1 their codes do not decide", pod, history{all, exited("app", 1, 0), exited("side", 1, 137)}, 1, "Succeeded; side Error(137); init Completed(0) ready; app Completed(0)"},
		{"2.1 nor do their successes", pod, history{all, exited("app", 1, 3), exited("side", 1, 0)}, 1, "Failed; side Completed(0); init Completed(0) ready; app Error(3)"},
		{"3 a new round knows nothing of them but their restarts", podOf(always, "side", "app"), history{up(), ran("side", 1, 1), ran("side", 2, 1), ran("app", 1, 1), tick(5), round2}, 5, "Pending; side PodInitializing +1; app Error(1)"},
		{"5.4 a sidecar that is not ready", gated, history{side, probed("side", 1, startup, good), running("app", 1), probed("side", 1, readiness, bad)}, 1, "Running; side Running; app Running ready"},
		{"2.3 one that never ran waits to the end", podOf(never, "init", "side", "app"), history{up(), ran("init", 1, 1)}, 1, "Failed; init Error(1); side PodInitializing; app PodInitializing"},
	}.check(t)
}

func TestStatusRestartAll(t *testing.T) {
	pod := func(names ...string) *spec.Pod {
		return with(podOf(never, names...), own(never, rule(restartAll, "In", 42)))
	}
	two := pod("app", "other")
	three := pod("app", "init", "side")
	asks := history{up(), running("app", 1), running("other", 1), exited("app", 1, 42)}
	begin := lifecycle.StartRound{Round: 2, By: run("app", 1)}
	round2 := history{asks, exited("other", 1, 0), begin}
	all3 := history{up(), ran("init", 1, 0), running("side", 1), running("app", 1), exited("app", 1, 42), exited("side", 1, 0), begin}
	init2 := history{
		pulled("init", 2),
		lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "init", Round: 2, Attempt: 2}, Sandbox: 1, Restarts: 1},
		happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerStarted{Ref: lifecycle.Ref{Container: "init", Round: 2, Attempt: 2}, At: t}
		}),
	}
	statuses{
		{"4.2 who asked for it shows how it ended", two, asks, 1, "Running; app Error(42); other Running ready"},
		{"4.2 also when all have ended", two, history{asks, exited("other", 1, 0)}, 1, "Running; app Error(42); other Completed(0)"},
		{"4.2 though it has backed off before", with(pod("app", "other"), own(never, rule(again, "In", 3), rule(restartAll, "In", 42))), history{up(), ran("app", 1, 3), running("app", 2), running("other", 1), exited("app", 2, 42)}, 1, "Running; app Error(42) after Error(3) +1; other Running ready"},
		{"4.2 then all wait to begin again", two, round2, 1, "Running; app RestartingAllContainers after RestartingAllContainers(137) +1; other RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 but for what never ran", two, history{up(), ran("app", 1, 42), begin}, 1, "Pending; app RestartingAllContainers after RestartingAllContainers(137) +1; other ContainerCreating"},
		{"4.2 each run knows that", two, history{round2, pullFailed("app", 2, 1, lifecycle.ReasonErrImagePull)}, 1, "Running; app ErrImagePull after RestartingAllContainers(137) +1; other RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 init containers too", three, all3, 1, "Running; init RestartingAllContainers after RestartingAllContainers(137) +1; side RestartingAllContainers after RestartingAllContainers(137) +1; app RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 when they run the pod is Pending again", three, history{all3, init2}, 1, "Pending; init Running after RestartingAllContainers(137) +1; side RestartingAllContainers after RestartingAllContainers(137) +1; app RestartingAllContainers after RestartingAllContainers(137) +1"},
		{"4.2 a pod that ends then has failed", two, history{round2, stopped(time.Minute)}, 1, "Failed; app RestartingAllContainers(137) +1; other RestartingAllContainers(137) +1"},
	}.check(t)
}

// TestStatusShares: each container shows its share of what the messages of a pod may hold together, in whole letters.
func TestStatusShares(t *testing.T) {
	const letters = 2000 // of three bytes
	debug := func(name string) happened {
		return func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.EphemeralAdded{Container: spec.Container{Name: name}, At: t}
		}
	}
	told := func(name string) history {
		return history{running(name, 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.ContainerExited{Ref: run(name, 1), Exit: lifecycle.Exit{Code: 1, Message: strings.Repeat("€", letters)}, At: t}
		})}
	}
	for _, row := range []struct {
		pod  *spec.Pod
		past history
		want int // letters
	}{
		{podOf(never, "app"), nil, letters},
		{podOf(never, "init", "side", "app"), nil, 4096 / 3},
		{podOf(never, "app"), history{debug("a"), debug("b"), debug("c"), debug("d")}, 12288 / 5 / 3},
	} {
		s := lifecycle.StatusOf(row.pod, fold(history{up(), row.past, told("app")}), at(1))
		if got := s.ContainerStatuses[0].State.Terminated.Message; got != strings.Repeat("€", row.want) {
			t.Errorf("%d init containers, %d ephemeral ones: %d bytes, want %d letters", len(row.pod.InitContainers), len(row.past), len(got), row.want)
		}
	}
}

// TestStatusShareOfOne is all there is.
func TestStatusShareOfOne(t *testing.T) {
	exit := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.ContainerExited{Ref: run("app", 1), Exit: lifecycle.Exit{Message: strings.Repeat("x", 13000)}, At: t}
	})
	s := lifecycle.StatusOf(podOf(never, "app"), fold(history{up(), running("app", 1), exit}), at(1))
	if got := len(s.ContainerStatuses[0].State.Terminated.Message); got != 12288 {
		t.Errorf("%d bytes, want 12288", got)
	}
}

// TestStatusOfALostSandbox: that one was lost is no reason why the next is not there; that it could not be made is.
func TestStatusOfALostSandbox(t *testing.T) {
	for want, past := range map[string]history{
		"":     {up(), lost(1)},
		"oops": {startSandbox(1), failed(startSandbox(1), oops)},
	} {
		s := lifecycle.StatusOf(podOf(always, "app"), fold(past), at(1))
		if w := s.ContainerStatuses[0].State.Waiting; w == nil || w.Message != want {
			t.Errorf("it waits for %+v, want the message %q", w, want)
		}
	}
}

func TestStatusEnds(t *testing.T) {
	live := history{up(), running("app", 1)}
	app := podOf(always, "app")
	for _, row := range []struct {
		name            string
		past            history
		now             float64
		phase           lifecycle.Phase
		reason, message string
	}{
		{"7.5 a pod that its deadline ends runs on till it has ended", history{live, endPod(time.Minute)}, 2, "Running", "", ""},
		{"7.5 and has failed then, whatever its containers say", history{live, endPod(time.Minute), exited("app", 1, 0)}, 2, "Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"},
		{"7.5 a stop alone is no reason", history{live, stopped(time.Minute), exited("app", 1, 1)}, 2, "Failed", "", ""},
		{"DEVIATIONS 20 for 10 s an absent engine is nothing", history{live, tick(10), engineLost}, 20, "Running", "", ""},
		{"DEVIATIONS 20 after that nobody knows", history{live, tick(10), engineLost}, 20.001, "Unknown", "EngineUnavailable", "The container engine cannot be reached"},
		{"DEVIATIONS 20 until it is back", history{live, tick(10), engineLost, engineFound}, 30, "Running", "", ""},
		{"DEVIATIONS 20 a pod that has failed stays so", history{live, tick(5), stopped(1), exited("app", 1, 1), tick(10), engineLost}, 30, "Failed", "", ""},
		{"DEVIATIONS 20 and one that has succeeded", history{live, tick(5), stopped(1), exited("app", 1, 0), tick(10), engineLost}, 30, "Succeeded", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := lifecycle.StatusOf(app, fold(row.past), at(row.now))
			got := []string{string(s.Phase), string(s.Reason), s.Message}
			if diff := cmp.Diff([]string{string(row.phase), row.reason, row.message}, got); diff != "" {
				t.Errorf("phase, reason, message (-want +got):\n%s", diff)
			}
			if row.phase == lifecycle.PhaseUnknown && s.ContainerStatuses[0].State.Running == nil {
				t.Errorf("the last known state is not shown: %+v", s.ContainerStatuses[0].State)
			}
		})
	}
}

// TestConditionsOfMore holds the conditions that not every pod has, in the order in which they come.
func TestConditionsOfMore(t *testing.T) {
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
		want string // from Initialized on
	}{
		{"2.2 readiness gates", gated, live, "Initialized True; ContainersReady True; Ready False ReadinessGatesNotReady " + strings.ReplaceAll(noGate, "%s", "b") + ", " + strings.ReplaceAll(noGate, "%s", "a")},
		{"2.2 that are there", gated, history{live, gate("example.com/a", "True"), gate("example.com/b", "False")}, "Initialized True; ContainersReady True; Ready False ReadinessGatesNotReady " + closed + "; example.com/a True Why because; example.com/b False Why because"},
		{"2.2 and True", gated, history{live, gate("example.com/a", "True"), gate("example.com/b", "True")}, "Initialized True; ContainersReady True; Ready True; example.com/a True Why because; example.com/b True Why because"},
		{"2.2 containers come first", gated, up(), "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False ContainersNotReady containers with unready status: [app]"},
		{"2.2 a sidecar that is not started", side, history{up(), running("side", 1)}, "Initialized False ContainersNotInitialized containers with incomplete status: [side init]; ContainersReady False ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready status: [side y x]"},
		{"2.2 one that is", side, sideUp, "Initialized False ContainersNotInitialized containers with incomplete status: [init]; ContainersReady False ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready status: [side y x]"},
		{"2.2 its readiness is asked for later", side, history{sideUp, ran("init", 1, 0)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [side y x]; Ready False ContainersNotReady containers with unready status: [side y x]"},
		{"2.2 and counts", side, history{sideUp, ran("init", 1, 0), running("x", 1), running("y", 1)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [side]; Ready False ContainersNotReady containers with unready status: [side]"},
		{"2.2 like the others'", side, history{sideUp, ran("init", 1, 0), running("x", 1), running("y", 1), probed("side", 1, readiness, good)}, "Initialized True; ContainersReady True; Ready True"},
		{"2.2 a pod with a rule for all containers says whether they restart", rules, history{live, running("other", 1)}, "Initialized True; ContainersReady True; Ready True; AllContainersRestarting False"},
		{"4.2 when they do", rules, history{live, running("other", 1), exited("app", 1, 42)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False ContainersNotReady containers with unready status: [app]; AllContainersRestarting True RestartAllContainersStarted container exited with restart policy rule"},
		{"2.2 of a pod that has succeeded it has the pod's reason", rules, history{live, running("other", 1), exited("app", 1, 0), exited("other", 1, 0)}, "Initialized True PodCompleted; ContainersReady False PodCompleted; Ready False PodCompleted; AllContainersRestarting False PodCompleted"},
		{"2.2 of one that has failed too", rules, history{live, running("other", 1), exited("app", 1, 1), exited("other", 1, 0)}, "Initialized True; ContainersReady False PodFailed; Ready False PodFailed; AllContainersRestarting False PodFailed"},
		{"4.2 not by another rule", rules, history{live, running("other", 1), exited("other", 1, 42)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [other]; Ready False ContainersNotReady containers with unready status: [other]; AllContainersRestarting False"},
		{"4.2 nor in a pod that is to end", rules, history{live, running("other", 1), exited("app", 1, 42), stopped(time.Minute)}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app]; Ready False ContainersNotReady containers with unready status: [app]; AllContainersRestarting False"},
		{"4.2 once initialized it stays so", within(rules, "other", own(never)), history{live, running("other", 1), exited("app", 1, 42), exited("other", 1, 0), lifecycle.StartRound{Round: 2}}, "Initialized True; ContainersReady False ContainersNotReady containers with unready status: [app other]; Ready False ContainersNotReady containers with unready status: [app other]; AllContainersRestarting False"},
		{"DEVIATIONS 20 an absent engine changes no condition", podOf(always, "app"), history{live, func() happened { return engineLost }()}, "Initialized True; ContainersReady True; Ready True"},
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

// TestInitializedForGood: a stop comes between the start of the last sidecar and the turn of the app container.
func TestInitializedForGood(t *testing.T) {
	pod := podOf(spec.RestartNever, "side", "x")
	past := history{up(), stopped(10 * time.Second), running("side", 1)}
	first := lifecycle.StatusOf(pod, fold(past), at(2)).Since(nil, at(2))
	past = append(past, exited("side", 1, 0))
	want := first.Conditions[2]
	if want.Type != lifecycle.PodInitialized || want.Status != "True" {
		t.Fatalf("while the sidecar runs: %+v", want)
	}
	if got := lifecycle.StatusOf(pod, fold(past), at(9)).Since(first.Conditions, at(9)).Conditions[2]; got != want {
		t.Errorf("when it has ended: %+v, want %+v", got, want)
	}
	never := lifecycle.StatusOf(pod, fold(up()), at(2)).Since(nil, at(2)).Conditions[2]
	if got := lifecycle.StatusOf(pod, fold(past), at(9)).Since([]lifecycle.Condition{never}, at(9)).Conditions[2]; got.Status != "False" {
		t.Errorf("of a pod that was not initialized before: %+v", got)
	}
}

// TestConditionsAreBounded sets more conditions than a pod can hold.
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
		t.Errorf("a known condition was not set: %v", after.Conditions)
	}
	if text(facts) != before {
		t.Error("the facts before were changed")
	}
}
