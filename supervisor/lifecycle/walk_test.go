package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

// TestWalks folds events that no engine would send, in any order and about any attempt. Safety must not depend on the behaviour
// of the engine.
func TestWalks(t *testing.T) { rapid.Check(t, walk) }

// FuzzWalks is [TestWalks] for go test -fuzz.
func FuzzWalks(f *testing.F) {
	seed(f)
	f.Fuzz(rapid.MakeFuzz(walk))
}

func walk(t *rapid.T) {
	pod := drawPod(t)
	now := lifecycle.Instant{Boot: "1", Mono: time.Minute, Wall: time.Unix(0, 0).UTC()}
	facts := lifecycle.Facts{UID: "uid", Accepted: now}
	v := invariants{}
	fold := func(e lifecycle.Event) {
		before := facts
		if e, ok := e.(lifecycle.DefinitionChanged); ok {
			if !e.Fits(facts) {
				return
			}
			pod = e.To
		}
		facts = facts.Apply(e)
		if err := v.step(lifecycletest.Step{Pod: pod, Now: now, Before: before, After: facts, Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	for range rapid.IntRange(1, 60).Draw(t, "turns") {
		settled := false
		for range 20 {
			d := lifecycle.Decide(pod, facts, now)
			if err := v.step(lifecycletest.Step{Pod: pod, Now: now, Before: facts, After: facts, Decision: d}); err != nil {
				t.Fatal(err)
			}
			for _, a := range d.Actions {
				fold(lifecycle.Issued{Action: a, At: now})
			}
			if settled = len(d.Actions) == 0; settled {
				break
			}
		}
		if !settled {
			t.Fatal("no fixed point")
		}
		todo := facts.Unresolved()
		seen := map[lifecycle.Action]bool{}
		for _, a := range todo {
			if seen[a] {
				t.Fatalf("%#v is unresolved twice", a)
			}
			seen[a] = true
		}
		now = now.Add(drawDuration(t, 30*time.Second))
		if len(todo) > 0 && rapid.IntRange(0, 3).Draw(t, "answer") > 0 {
			fold(answer(t, rapid.SampledFrom(todo).Draw(t, "of"), now))
		} else {
			fold(drawEvent(t, pod, now))
		}
	}
}

// answer returns one of the two outcomes of an action.
func answer(t *rapid.T, a lifecycle.Action, now lifecycle.Instant) lifecycle.Event {
	if rapid.IntRange(0, 3).Draw(t, "well") == 0 {
		return lifecycle.ActionFailed{Action: a, Failure: drawFailure(t), At: now}
	}
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		return lifecycle.SandboxStarted{Sandbox: a.Sandbox, At: now}
	case lifecycle.ResizePod:
		return lifecycle.PodResized{N: a.N, At: now}
	case lifecycle.RemoveSandbox:
		return lifecycle.SandboxRemoved{Sandbox: a.Sandbox, At: now}
	case lifecycle.PullImage:
		return lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: drawImage(t), At: now}
	case lifecycle.FindImage:
		return lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: a.Image, At: now}
	case lifecycle.StartContainer:
		return lifecycle.ContainerStarted{Ref: a.Ref, ID: "id", At: now}
	case lifecycle.RunPostStart:
		return lifecycle.HookFinished{Ref: a.Ref, Hook: lifecycle.PostStart, At: now}
	case lifecycle.RunPreStop:
		return lifecycle.HookFinished{Ref: a.Ref, Hook: lifecycle.PreStop, At: now}
	case lifecycle.StopContainer:
		return lifecycle.SignalSent{Ref: a.Ref, At: now}
	case lifecycle.KillContainer:
		return lifecycle.SignalSent{Ref: a.Ref, Kill: true, At: now}
	case lifecycle.RemoveContainer:
		return lifecycle.ContainerRemoved{Ref: a.Ref, At: now}
	case lifecycle.RemovePod:
		return lifecycle.PodRemoved{At: now}
	case lifecycle.CollectPod:
		return lifecycle.PodCollected{At: now}
	}
	return lifecycle.ActionFailed{Action: a, At: now}
}

func drawImage(t *rapid.T) lifecycle.Image {
	return lifecycle.Image{ID: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "image")}
}

func drawFailure(t *rapid.T) lifecycle.Failure {
	return lifecycle.Failure{Kind: rapid.SampledFrom([]lifecycle.FailureKind{
		lifecycle.FailureRetry, lifecycle.FailureUnavailable, lifecycle.FailureNotCreated, lifecycle.FailureNotFound,
	}).Draw(t, "kind")}
}

// drawEvent draws any event, about any object.
func drawEvent(t *rapid.T, pod *spec.Pod, now lifecycle.Instant) lifecycle.Event {
	names := []string{"unknown"}
	for _, list := range [][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	n := rapid.IntRange(0, 4).Draw(t, "n")
	ref := lifecycle.Ref{
		Container: rapid.SampledFrom(names).Draw(t, "name"), Round: rapid.IntRange(0, 3).Draw(t, "round"), Attempt: n,
	}
	to, restarted := redefined(pod, rapid.SampledFrom(changes).Draw(t, "change"), n)
	exit := lifecycle.Exit{Code: rapid.IntRange(0, 1).Draw(t, "code")}
	events := []lifecycle.Event{
		lifecycle.ResizeInterrupted{},
		lifecycle.PodResized{N: n, At: now},
		lifecycle.SandboxStarted{Sandbox: n, At: now},
		lifecycle.SandboxLost{Sandbox: n, At: now},
		lifecycle.ContainerStarted{Ref: ref, At: now},
		lifecycle.ContainerExited{Ref: ref, Exit: exit, At: now},
		lifecycle.SignalSent{Ref: ref, Kill: exit.Code == 0, At: now},
		lifecycle.ActionFailed{Action: lifecycle.StartContainer{Ref: ref}, Failure: drawFailure(t), At: now},
		lifecycle.ActionFailed{Action: lifecycle.KillContainer{Ref: ref}, Failure: drawFailure(t), At: now},
		lifecycle.ActionFailed{Action: lifecycle.PullImage{Container: ref.Container, For: n}, Failure: drawFailure(t), At: now},
		lifecycle.ActionFailed{Action: lifecycle.StartSandbox{Sandbox: n}, Failure: drawFailure(t), At: now},
		lifecycle.ActionFailed{Action: lifecycle.RunPostStart{Ref: ref}, Failure: drawFailure(t), At: now},
		lifecycle.ActionFailed{Action: lifecycle.RunPreStop{Ref: ref}, Failure: drawFailure(t), At: now},
		lifecycle.HookFinished{Ref: ref, Hook: lifecycle.PostStart, At: now},
		lifecycle.ProbeChanged{
			ProbeRef: lifecycle.ProbeRef{Ref: ref, Kind: rapid.SampledFrom(kinds).Draw(t, "kind")},
			Verdict:  rapid.SampledFrom([]lifecycle.Verdict{good, bad}).Draw(t, "verdict"), At: now,
		},
		lifecycle.StopRequested{Grace: lifecycle.Grace{Period: time.Second, Force: n == 0}, Delete: n == 1, At: now},
		lifecycle.EphemeralAdded{
			Container: spec.Container{Name: rapid.SampledFrom([]string{"debug", "unknown"}).Draw(t, "added")}, At: now,
		},
		lifecycle.Booted{Saved: now, At: now},
		lifecycle.RestartRequested{By: "test", At: now},
		lifecycle.ContainerRestartRequested{Container: ref.Container, By: "test", At: now},
		lifecycle.DefinitionChanged{
			From: pod, To: to, Restarted: restarted, Images: map[string]lifecycle.Image{ref.Container: drawImage(t)}, At: now,
		},
		lifecycle.ConditionMet{WaitRef: lifecycle.WaitRef{Wait: n, Condition: waitConditions[n%2]}, At: now},
		lifecycle.TrialBegun{Trial: lifecycle.NewTrial(time.Duration(n)*time.Second, time.Second, exit.Code == 0, now)},
		lifecycle.TrialKept{At: now},
		lifecycle.ConditionUnmet{WaitRef: lifecycle.WaitRef{Wait: n, Condition: waitConditions[n%2]}, Message: "not met"},
	}
	return events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
}

// TestFactsStayBounded crashes a container ten thousand times and checks that the facts grow only by the digits of their
// numbers.
func TestFactsStayBounded(t *testing.T) {
	pod := &spec.Pod{Name: "p", RestartPolicy: spec.RestartAlways, Containers: []spec.Container{{Name: "app", Image: "i"}}}
	w := lifecycletest.New(pod, lifecycletest.Script{Runs: map[string][]lifecycletest.Run{
		"app": make([]lifecycletest.Run, 10_000),
	}})
	if err := w.Run(time.Hour); err != nil {
		t.Fatal(err)
	}
	early := len(text(w.Facts))
	if err := w.Run(10_000 * 5 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := w.Facts.Container("app").Newest.Attempt; n != 10_001 {
		t.Fatalf("%d attempts, want 10001", n)
	}
	if late := len(text(w.Facts)); late > early+100 {
		t.Errorf("facts have %d bytes after an hour and %d bytes after 10000 crashes: %s", early, late, text(w.Facts))
	}
}

// TestRedefinedFactsStayBounded removes and adds containers a thousand times and checks that nothing of them is left.
func TestRedefinedFactsStayBounded(t *testing.T) {
	pods := [2]*spec.Pod{podOf(spec.RestartAlways, "app", "one"), podOf(spec.RestartAlways, "app", "two")}
	forever := make([]lifecycletest.Run, 1000)
	for i := range forever {
		forever[i] = lifecycletest.Run{Forever: true}
	}
	w := lifecycletest.New(pods[0],
		lifecycletest.Script{Runs: map[string][]lifecycletest.Run{"app": forever, "one": forever, "two": forever}})
	v := invariants{}
	w.Observe = func(s lifecycletest.Step) {
		if err := v.step(s); err != nil {
			w.Violation(err)
		}
	}
	sizes := map[int]int{}
	for i := range 1000 {
		w.At(time.Duration(i+1)*time.Minute, func() { w.Redefine(pods[(i+1)%2], i%3 == 0) })
		w.At(time.Duration(i+1)*time.Minute+time.Second, func() { sizes[i] = len(text(w.Facts)) })
	}
	if err := w.Run(2000 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if sizes[999] > sizes[9]+100 || len(w.Facts.Containers) != 2 || w.Records("two") > 0 || w.Facts.Container("app").Newest.Attempt != 1 {
		t.Errorf("facts have %d bytes after 10 changes and %d bytes after 1000: %s", sizes[9], sizes[999], text(w.Facts))
	}
}

// TestDeterministic runs the same world twice.
func TestDeterministic(t *testing.T) {
	life := func() string {
		pod := &spec.Pod{Name: "p", InitContainers: []spec.Container{{Name: "i"}}}
		for n := range 20 {
			pod.Containers = append(pod.Containers, spec.Container{Name: fmt.Sprintf("app-%02d", n), Image: "i"})
		}
		w := lifecycletest.New(pod, lifecycletest.Script{})
		timeline := lifecycletest.NewTimeline(pod)
		w.Observe = timeline.Observe
		w.At(time.Minute, func() { w.LoseSandbox(false) })
		w.At(2*time.Minute, func() { w.Crash(time.Second) })
		w.At(3*time.Minute, func() { w.Stop(nil, true) })
		if err := w.Run(time.Hour); err != nil {
			t.Fatal(err)
		}
		return timeline.String()
	}
	if one, two := life(), life(); one != two {
		t.Errorf("first run:\n%s\nsecond run:\n%s", one, two)
	}
}
