package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestDefinitionChangedFits checks the limit of removed containers that have not stopped.
func TestDefinitionChangedFits(t *testing.T) {
	many := &spec.Pod{Name: "p", Containers: []spec.Container{{Name: "app"}}}
	past := history{up()}
	for i := range 64 {
		name := fmt.Sprintf("old-%d", i)
		many.Containers = append(many.Containers, spec.Container{Name: name})
		past = append(past, running(name, 1))
	}
	few := podOf(spec.RestartAlways, "app")
	facts := fold(past)
	e := lifecycle.DefinitionChanged{From: many, To: few, At: at(2)}
	if !e.Fits(facts) {
		t.Error("64 removed containers do not fit")
	}
	facts = facts.Apply(e)
	if again := (lifecycle.DefinitionChanged{From: podOf(spec.RestartAlways, "app", "more"), To: few, At: at(3)}); again.Fits(facts) {
		t.Error("a 65th removed container fits")
	}
	if same := (lifecycle.DefinitionChanged{From: few, To: few, At: at(3)}); !same.Fits(facts) {
		t.Error("a change that removes nothing does not fit")
	}
}

// TestRetireUnknown checks that containers that the engine has and the pod does not are stopped, and no others.
func TestRetireUnknown(t *testing.T) {
	added := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.EphemeralAdded{Container: spec.Container{Name: "debug"}, At: t}
	})
	facts := fold(history{up(), running("app", 1), running("extra", 1), added, running("debug", 1), running("other", 1)})
	pod := podOf(spec.RestartAlways, "app")
	found := lifecycle.Found{Pod: podOf(spec.RestartAlways, "app", "extra", "debug")}
	var stopped []string
	for _, a := range lifecycle.Decide(pod, facts.RetireUnknown(pod, found), at(2)).Actions {
		if s, ok := a.(lifecycle.StopContainer); ok && s.Reason == lifecycle.ReasonContainerRemoved {
			stopped = append(stopped, s.Container)
		}
	}
	if !slices.Equal(stopped, []string{"extra"}) {
		t.Errorf("stopped %v, want extra", stopped)
	}
	if got := facts.RetireUnknown(pod, lifecycle.Found{}); len(got.Outgoing) > 0 {
		t.Errorf("without a definition: %+v", got.Outgoing)
	}
}

// TestAbandonReplacedStart checks that the start of a run that is replaced, or of a removed container, is not repeated after a crash.
func TestAbandonReplacedStart(t *testing.T) {
	from, to := podOf(spec.RestartAlways, "app", "old"), podOf(spec.RestartAlways, "app")
	facts := fold(history{up(), issued("app", 1), issued("old", 1)}).Apply(
		lifecycle.DefinitionChanged{From: from, To: to, Restarted: []string{"app"}, At: at(2)})
	if n := len(facts.Unresolved()); n != 2 {
		t.Fatalf("%d starts without an outcome, want 2", n)
	}
	if got := facts.AbandonStarts(to, lifecycle.Found{}, at(3)).Unresolved(); len(got) > 0 {
		t.Errorf("repeated: %#v", got)
	}
	unchanged := fold(history{up(), issued("app", 1)})
	if got := unchanged.AbandonStarts(to, lifecycle.Found{}, at(3)).Unresolved(); len(got) != 1 {
		t.Errorf("repeated: %#v, want the start", got)
	}
}

// TestDefinitionChangedWithoutHook checks that a postStart hook that is removed while it runs counts as done, whatever its outcome.
func TestDefinitionChangedWithoutHook(t *testing.T) {
	to := podOf(spec.RestartAlways, "app", "other")
	from := with(podOf(spec.RestartAlways, "app", "other"), hook(lifecycle.PostStart))
	removed := happened(func(t lifecycle.Instant) lifecycle.Event {
		return lifecycle.DefinitionChanged{From: from, To: to, At: t}
	})
	hooked := history{up(), pulled("other", 1), running("app", 1), postStart("app", 1), removed}
	decisions{
		{name: "the next container starts", pod: to, past: hooked, now: 1, want: do{start("other", 1, 0, 0)}},
		{name: "its failure does not stop the container", pod: to, past: history{hooked, running("other", 1), failed(postStart("app", 1), oops)}, now: 1},
		{name: "it is not retried", pod: to, past: history{hooked, running("other", 1), failed(postStart("app", 1), unavailable)}, now: 5},
		{name: "it does not run if it is added again", pod: from, past: history{hooked, running("other", 1), happened(func(t lifecycle.Instant) lifecycle.Event {
			return lifecycle.DefinitionChanged{From: to, To: from, At: t}
		})}, now: 5},
	}.check(t)
}

// TestRetireUnknownIsBounded checks that the facts do not grow with the number of containers that the engine has.
func TestRetireUnknownIsBounded(t *testing.T) {
	const most = 128
	past, names := history{up()}, []string{"app"}
	for i := range most + 1 {
		name := fmt.Sprintf("extra-%03d", i)
		past, names = append(past, running(name, 1)), append(names, name)
	}
	facts := fold(past).RetireUnknown(podOf(spec.RestartAlways, "app"), lifecycle.Found{Pod: podOf(spec.RestartAlways, names...)})
	if n := len(facts.Outgoing); n != most {
		t.Errorf("%d containers are being removed, want %d", n, most)
	}
}

// TestAbandonedPull checks that a pull that is abandoned because the pod starts again has not failed: the next one is not delayed.
func TestAbandonedPull(t *testing.T) {
	pod := podOf(spec.RestartAlways, "app")
	facts := fold(history{up(), pull("app", 1, 1)}).Apply(lifecycle.RestartRequested{By: "test", At: at(1)})
	got := facts.AbandonStarts(pod, lifecycle.Found{}, at(2)).Containers["app"].Pull
	if !got.Failed.IsZero() || !got.Requested.IsZero() || got.Reason != "" {
		t.Errorf("pull %+v, want one that was neither requested nor failed", got)
	}
}

// TestStatusOfSkippedInitContainer checks that an init container that was added after its turn is shown as completed, as the kubelet shows
// it, and one whose turn is to come is not.
func TestStatusOfSkippedInitContainer(t *testing.T) {
	pod := &spec.Pod{
		Name: "p", RestartPolicy: spec.RestartAlways,
		InitContainers: []spec.Container{{Name: "late"}}, Containers: []spec.Container{{Name: "app"}},
	}
	for _, test := range []struct {
		name    string
		past    history
		skipped bool
	}{
		{"app container has started", history{up(), running("app", 1)}, true},
		{"nothing has started", history{up()}, false},
	} {
		s := lifecycle.StatusOf(pod, fold(test.past), at(3)).InitContainerStatuses[0]
		completed := s.State.Terminated != nil && s.State.Terminated.Reason == lifecycle.ReasonCompleted
		if completed != test.skipped || s.Ready != test.skipped {
			t.Errorf("%s: %+v, want completed and ready: %v", test.name, s, test.skipped)
		}
	}
}

// TestGeneration checks that changes of the spec count, those of metadata do not, and ephemeral containers do.
func TestGeneration(t *testing.T) {
	from, to := podOf(spec.RestartAlways, "app"), podOf(spec.RestartAlways, "app", "more")
	facts := fold(history{up(), running("app", 1)})
	for i, step := range []struct {
		event lifecycle.Event
		want  int64
	}{
		{lifecycle.DefinitionChanged{From: from, To: from, MetadataOnly: true, At: at(2)}, 1},
		{lifecycle.DefinitionChanged{From: from, To: to, At: at(3)}, 2},
		{lifecycle.EphemeralAdded{Container: spec.Container{Name: "debug"}, At: at(4)}, 3},
		{lifecycle.EphemeralAdded{Container: spec.Container{Name: "debug"}, At: at(5)}, 3}, // its name is taken
	} {
		facts = facts.Apply(step.event)
		if got := lifecycle.StatusOf(to, facts, at(6)).ObservedGeneration; got != step.want || facts.Generation() != step.want {
			t.Errorf("step %d: generation %d, observed %d, want %d", i, facts.Generation(), got, step.want)
		}
	}
}
