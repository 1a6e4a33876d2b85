package lifecycle

import (
	"reflect"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
)

// withOutgoing returns facts with a container that has run once, and its earlier definition.
func withOutgoing(removed bool) Facts {
	return Facts{
		Containers: map[string]*Container{"c": {Newest: Attempt{Ref: Ref{Container: "c", Round: 1, Attempt: 1}}}},
		Outgoing:   []Outgoing{{Container: spec.Container{Name: "c", Image: "old"}, Attempt: 1, Removed: removed}},
	}
}

// TestNextRunEndsOutgoing: the next run of a container ends the earlier definition, unless the container was removed.
func TestNextRunEndsOutgoing(t *testing.T) {
	for _, removed := range []bool{false, true} {
		f := withOutgoing(removed)
		StartContainer{Ref: Ref{Container: "c", Round: 1, Attempt: 2}}.issued(&f, Instant{})
		if kept := len(f.Outgoing) == 1; kept != removed {
			t.Errorf("removed: %t, the earlier definition is kept: %t", removed, kept)
		}
	}
}

// TestRetireAfterChanged: a removed container stops also if the definition of another one has only changed.
func TestRetireAfterChanged(t *testing.T) {
	f := withOutgoing(true)
	f.Containers["c"].Newest.Started = Instant{Boot: "b", Mono: 1}
	p := plan{pod: &spec.Pod{}, facts: &f}
	p.retire()
	alone := len(p.decision.Actions)
	f.Outgoing = append([]Outgoing{{Container: spec.Container{Name: "changed"}, Attempt: 1}}, f.Outgoing...)
	p = plan{pod: &spec.Pod{}, facts: &f}
	p.retire()
	if alone == 0 || len(p.decision.Actions) != alone {
		t.Errorf("%d actions beside a changed container, %d alone", len(p.decision.Actions), alone)
	}
}

// TestEscalatedOfTheSameStep: a checkpoint of another boot, time or step is not folded in.
func TestEscalatedOfTheSameStep(t *testing.T) {
	own := Escalation{Step: StepNone + 1, At: Instant{Boot: "b", Mono: 5}, Since: Instant{Boot: "b", Mono: 6}}
	for name, change := range map[string]func(*Escalation){
		"boot": func(e *Escalation) { e.At.Boot = "a" },
		"time": func(e *Escalation) { e.At.Mono = 4 },
		"step": func(e *Escalation) { e.Step++ },
	} {
		saved := own
		saved.Since = Instant{Boot: "b", Mono: 7}
		if got := (Facts{Escalation: own}).Escalated(saved); got.Escalation.Since != saved.Since {
			t.Errorf("the same step: %+v, want %+v", got.Escalation, saved)
		}
		change(&saved)
		if got := (Facts{Escalation: own}).Escalated(saved); got.Escalation.Since != own.Since {
			t.Errorf("another %s: %+v, want %+v", name, got.Escalation, own)
		}
	}
}

// TestUnknownContainerHasNoOutgoing: a container without facts has no definition to keep, also if it is removed.
func TestUnknownContainerHasNoOutgoing(t *testing.T) {
	f := Facts{Containers: map[string]*Container{}}
	f.goes(&spec.Pod{}, &spec.Container{Name: "c"}, true)
	if len(f.Outgoing) > 0 {
		t.Errorf("kept definitions: %+v", f.Outgoing)
	}
}

func TestDefinitionOf(t *testing.T) {
	pod := &spec.Pod{Containers: []spec.Container{{Name: "c", Image: "new"}}}
	f := withOutgoing(false)
	for attempt, want := range map[int]string{1: "old", 2: "new"} {
		if c := DefinitionOf(pod, f, "c", attempt); c == nil || c.Image != want {
			t.Errorf("attempt %d: %+v, want image %s", attempt, c, want)
		}
	}
	if c := DefinitionOf(pod, f, "none", 1); c != nil {
		t.Errorf("a container that the pod does not have: %+v", c)
	}
}

// TestSupersededByRound: only the runs of earlier rounds are superseded when the pod runs again.
func TestSupersededByRound(t *testing.T) {
	f := Facts{Again: 2}
	for round, want := range map[int]bool{1: true, 2: false, 3: false} {
		if got := f.superseded(&Attempt{Ref: Ref{Container: "c", Round: round, Attempt: 1}}); got != want {
			t.Errorf("round %d: superseded %t, want %t", round, got, want)
		}
	}
}

func TestCompleted(t *testing.T) {
	for _, test := range []struct {
		condition Condition
		want      bool
	}{
		{Condition{Type: ContainersReady, Reason: ReasonPodCompleted}, true},
		{Condition{Type: ContainersReady, Reason: ReasonPodFailed}, true},
		{Condition{Type: ContainersReady, Reason: ReasonContainersNotReady}, false},
		{Condition{Type: PodReady, Reason: ReasonPodCompleted}, false},
	} {
		if got := Completed([]Condition{{Type: PodScheduled}, test.condition}); got != test.want {
			t.Errorf("%+v: completed %t", test.condition, got)
		}
	}
}

// TestInterrupted: a run that was stopped to be replaced has neither completed nor failed, and any other has.
func TestInterrupted(t *testing.T) {
	for reason, want := range map[Reason]bool{
		ReasonRestartRequested: true, ReasonDefinitionChanged: true, ReasonContainerRemoved: true, ReasonDeviceRemoved: true,
		ReasonLivenessProbe: false, "": false,
	} {
		if got := (&Attempt{StopReason: reason}).interrupted(); got != want {
			t.Errorf("stopped because of %q: %t, want %t", reason, got, want)
		}
	}
}

// TestOlderDefinitionIsKept: the definition that the run has is kept when the container is removed after a change that has not reached it.
func TestOlderDefinitionIsKept(t *testing.T) {
	f := withOutgoing(false)
	f.goes(&spec.Pod{}, &spec.Container{Name: "c", Image: "newer"}, true)
	if want := withOutgoing(true).Outgoing; !reflect.DeepEqual(f.Outgoing, want) {
		t.Errorf("kept definitions: %+v, want %+v", f.Outgoing, want)
	}
}

// TestNewerRunReplacesOutgoing: the definition of a newer run replaces that of a run before it, which has stopped.
func TestNewerRunReplacesOutgoing(t *testing.T) {
	f := withOutgoing(false)
	f.Containers["c"] = &Container{Newest: Attempt{Ref: Ref{Container: "c", Round: 1, Attempt: 2}}}
	c := spec.Container{Name: "c", Image: "newer"}
	f.goes(&spec.Pod{TerminationGracePeriodSeconds: 7}, &c, false)
	if want := []Outgoing{{Container: c, Attempt: 2, Grace: 7 * time.Second}}; !reflect.DeepEqual(f.Outgoing, want) {
		t.Errorf("kept definitions: %+v, want %+v", f.Outgoing, want)
	}
}

// TestStoppedRunHasNoOutgoing: the definition of a run that has stopped is not kept when the container is changed.
func TestStoppedRunHasNoOutgoing(t *testing.T) {
	exited := Attempt{Ref: Ref{Container: "c", Round: 1, Attempt: 2}, Exited: Instant{Boot: "b", Mono: 1}}
	f := Facts{Containers: map[string]*Container{"c": {Newest: exited}}}
	f.goes(&spec.Pod{}, &spec.Container{Name: "c"}, false)
	if len(f.Outgoing) > 0 {
		t.Errorf("kept definitions: %+v", f.Outgoing)
	}
}

// TestSuperseded: a restart of the pod replaces all runs but those of ephemeral containers, and a container that has not run.
func TestSuperseded(t *testing.T) {
	f := Facts{Restart: Restart{Requested: Instant{Boot: "b", Mono: 1}}, Ephemeral: []spec.Container{{Name: "debug"}}}
	for _, row := range []struct {
		name string
		run  Attempt
		want bool
	}{
		{"app container", Attempt{Ref: Ref{Container: "app", Attempt: 1}}, true},
		{"ephemeral container", Attempt{Ref: Ref{Container: "debug", Attempt: 1}}, false},
		{"container that has not run", Attempt{}, false},
	} {
		if got := f.superseded(&row.run); got != row.want {
			t.Errorf("%s: %t, want %t", row.name, got, row.want)
		}
	}
}

// TestStartAgain: a new round of the pod begins without the delays of what failed before.
func TestStartAgain(t *testing.T) {
	now := Instant{Boot: "b", Mono: 9}
	f := Facts{
		Round: 2, Restart: Restart{Requested: now, By: "a test"}, Sandbox: Sandbox{N: 1, Failures: 3}, Wait: Wait{N: 4, Since: now},
		Containers: map[string]*Container{"c": {Backoff: Backoff{Level: 2}, Failures: 1, OOMKills: 1}}, Trial: Trial{Since: now, Due: now},
	}
	StartAgain{Round: 3}.issued(&f, now)
	if f.Round != 3 || f.Again != 3 || f.AgainAt != now || f.Restart.pending() {
		t.Errorf("round %d, again %d at %v, restart %+v", f.Round, f.Again, f.AgainAt, f.Restart)
	}
	if c := f.Containers["c"]; c.Failures != 0 || c.OOMKills != 0 {
		t.Errorf("%d failures and %d OOM kills are left", c.Failures, c.OOMKills)
	}
	if f.Sandbox.Failures != 0 || f.Wait.N != 4 || !f.Wait.Since.IsZero() || f.Container("c").Backoff != (Backoff{}) {
		t.Errorf("delays are left: sandbox %+v, wait %+v, container %+v", f.Sandbox, f.Wait, f.Container("c").Backoff)
	}
	if !f.Trial.Due.IsZero() {
		t.Errorf("the time of the trial counts already: %+v", f.Trial)
	}
}

// TestRestartedIsNotRemoved: a container with a changed definition is stopped with its earlier definition, and starts again. One that the
// pod does not have any more is removed.
func TestRestartedIsNotRemoved(t *testing.T) {
	running := func(name string) *Container {
		return &Container{Newest: Attempt{Ref: Ref{Container: name, Round: 1, Attempt: 1}, Started: Instant{Boot: "b", Mono: 1}}}
	}
	stopped := running("stopped")
	stopped.Newest.Exited = Instant{Boot: "b", Mono: 1}
	f := Facts{Round: 1, Escalation: Escalation{Step: StepRestart}, Containers: map[string]*Container{
		"changed": running("changed"), "gone": running("gone"), "same": running("same"), "stopped": stopped,
	}}
	same := spec.Container{Name: "same", Image: "one"}
	from := &spec.Pod{Containers: []spec.Container{{Name: "changed", Image: "one"}, {Name: "gone", Image: "one"}, same, {Name: "stopped"}}}
	to := &spec.Pod{Containers: []spec.Container{{Name: "changed", Image: "two"}, same, {Name: "stopped"}}}
	f = f.Apply(DefinitionChanged{From: from, To: to, Restarted: []string{"changed", "stopped"}, At: Instant{Boot: "b", Mono: 2}})
	if f.Escalation != (Escalation{}) {
		t.Errorf("the escalation goes on after a change: %+v", f.Escalation)
	}
	removed := map[string]bool{}
	for _, o := range f.Outgoing {
		removed[o.Container.Name] = o.Removed
		if o.Container.Image != "one" || o.Attempt != 1 {
			t.Errorf("%+v, want the earlier definition of run 1", o)
		}
	}
	if want := map[string]bool{"changed": false, "gone": true}; !reflect.DeepEqual(removed, want) {
		t.Errorf("containers with an earlier definition, and whether they are removed: %v, want %v", removed, want)
	}
	for name, want := range map[string]Reason{"changed": ReasonDefinitionChanged, "same": "", "gone": ""} {
		c := f.Containers[name]
		if got := c.mustStop(); got != want {
			t.Errorf("%s must stop because of %q, want %q", name, got, want)
		}
	}
}

// TestStopReplacesRestart: a pod that is evicted or stopped by a shutdown is not started again by an earlier request, and an eviction ends
// its escalation. The first reason and the earliest deadline hold.
func TestStopReplacesRestart(t *testing.T) {
	now := Instant{Boot: "b", Mono: time.Hour}
	for name, event := range map[string]Event{
		"evicted": PodEvicted{Message: "full", At: now}, "shut down": HostShutdown{Grace: time.Hour, At: now},
	} {
		f := Facts{Restart: Restart{Requested: now}, Escalation: Escalation{Step: StepRestart}}.Apply(event)
		if f.Restart.pending() || f.Stop.Requested != now || f.Stop.Reason == "" {
			t.Errorf("%s: restart %+v, stop %+v", name, f.Restart, f.Stop)
		}
		if name == "evicted" && f.Escalation != (Escalation{}) {
			t.Errorf("%s: escalation %+v", name, f.Escalation)
		}
		first := Facts{Stop: Stop{Requested: Instant{Boot: "b", Mono: 1}, Deadline: Instant{Boot: "b", Mono: 2}}}
		if f := first.Apply(event); f.Stop != first.Stop {
			t.Errorf("%s while the pod stops: %+v, want %+v", name, f.Stop, first.Stop)
		}
	}
}
