package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
)

// TestRestartUnhealthyContainers: the first step of an escalation restarts the sidecars, the init container whose turn it is and the app
// containers.
func TestRestartUnhealthyContainers(t *testing.T) {
	pod := &spec.Pod{
		InitContainers: []spec.Container{{Name: "sidecar", RestartPolicy: spec.RestartAlways}, {Name: "first"}, {Name: "second"}},
		Containers:     []spec.Container{{Name: "app"}},
	}
	p := plan{pod: pod, facts: &Facts{Round: 1, Containers: map[string]*Container{
		"sidecar": {Newest: Attempt{Ref: Ref{Container: "sidecar", Round: 1, Attempt: 1}, Started: Instant{Boot: "b", Mono: 1}}},
	}}}
	p.step(StepRestart, 0)
	var restarted []string
	for _, a := range p.decision.Actions {
		if a, ok := a.(RestartUnhealthy); ok {
			restarted = append(restarted, a.Container)
		}
	}
	if want := []string{"sidecar", "first", "app"}; !slices.Equal(restarted, want) {
		t.Errorf("restarted: %v, want %v", restarted, want)
	}
}

// TestRebootOfUnhealthyPod: the last step of an escalation reboots the host, and restarts nothing.
func TestRebootOfUnhealthyPod(t *testing.T) {
	p := plan{pod: &spec.Pod{Containers: []spec.Container{{Name: "app"}}}, facts: &Facts{}}
	p.step(StepReboot, time.Minute)
	if want := []Action{RebootHost{Unready: time.Minute}}; !slices.Equal(p.decision.Actions, want) {
		t.Errorf("%#v, want %#v", p.decision.Actions, want)
	}
}

// TestEscalationComesLast: a step is decided when nothing else is to be done, since the rest may make the pod ready.
func TestEscalationComesLast(t *testing.T) {
	at := func(seconds int) Instant { return Instant{Boot: "b", Mono: time.Duration(seconds) * time.Second} }
	pod := &spec.Pod{OnUnhealthy: spec.UnhealthyRestart, UnhealthyAfterSeconds: 100, Containers: []spec.Container{{Name: "app"}}}
	for _, actions := range [][]Action{nil, {StartSandbox{Sandbox: 1}}} {
		p := plan{pod: pod, facts: &Facts{Escalation: Escalation{Since: at(1)}}, now: at(200), decision: Decision{Actions: actions}}
		p.escalate()
		if added := len(p.decision.Actions) > len(actions); added != (len(actions) == 0) {
			t.Errorf("after %d actions: %v", len(actions), p.decision.Actions)
		}
	}
	p := plan{pod: &spec.Pod{Containers: pod.Containers}, facts: &Facts{Escalation: Escalation{Step: StepRestart, At: at(1)}}, now: at(200)}
	if p.escalate(); !slices.Equal(p.decision.Actions, []Action{EndEscalation{}}) {
		t.Errorf("onUnhealthy was removed: %v, want EndEscalation", p.decision.Actions)
	}
	p = plan{pod: &spec.Pod{Containers: pod.Containers}, facts: &Facts{}, now: at(200)}
	if p.escalate(); len(p.decision.Actions) > 0 {
		t.Errorf("without onUnhealthy: %v, want nothing", p.decision.Actions)
	}
}

// TestEscalate: the second step restarts the pod in a new sandbox, the first does not. Both begin to count anew, and keep a gap.
func TestEscalate(t *testing.T) {
	now, gap := Instant{Boot: "b", Mono: 9}, Instant{Boot: "b", Mono: 3}
	for step, restarts := range map[Step]bool{StepRestart: false, StepReplace: true} {
		f := Facts{Escalation: Escalation{Gap: gap, Counted: time.Minute}}
		Escalate{Step: step}.issued(&f, now)
		if want := (Escalation{Gap: gap, Step: step, At: now}); f.Escalation != want {
			t.Errorf("%v: %+v, want %+v", step, f.Escalation, want)
		}
		want := Restart{}
		if restarts {
			want = Restart{Requested: now, By: EscalationBy}
		}
		if f.Restart != want {
			t.Errorf("%v: restart %+v, want %+v", step, f.Restart, want)
		}
	}
}

// TestUnreadyCounts: unready time does not count while a step would change nothing.
func TestUnreadyCounts(t *testing.T) {
	now := Instant{Boot: "b", Mono: 9}
	failed := func(r Reason) Container {
		return Container{
			Newest: Attempt{Ref: Ref{Container: "app", Round: 1, Attempt: 1}, CreateFailed: now, Exited: now, Exit: Exit{Reason: r}},
		}
	}
	running := func(p Probes) Container {
		return Container{Newest: Attempt{Ref: Ref{Container: "app", Round: 1, Attempt: 1}, Started: now, Probes: p}}
	}
	with := func(c Container) Facts { return Facts{Round: 1, Containers: map[string]*Container{"app": &c}} }
	for name, test := range map[string]struct {
		facts   Facts
		startup bool // the container has a startup probe
		want    bool
	}{
		"nothing has happened":      {Facts{}, false, true},
		"engine is unavailable":     {Facts{EngineUnavailable: now}, false, false},
		"stopped":                   {Facts{Stop: Stop{Requested: now}}, false, false},
		"restart is requested":      {Facts{Restart: Restart{Requested: now}}, false, false},
		"volume is missing":         {Facts{Sandbox: Sandbox{Failures: 1, Reason: ReasonFailedMount}}, false, false},
		"volume was missing before": {Facts{Sandbox: Sandbox{Reason: ReasonFailedMount}}, false, true},
		"runtime class is missing": {
			Facts{Sandbox: Sandbox{Failures: 1, Reason: ReasonRuntimeClassUnavailable}}, false, false,
		},
		"sandbox fails for another reason": {Facts{Sandbox: Sandbox{Failures: 1, Reason: ReasonStartError}}, false, true},
		"configuration is missing":         {with(failed(ReasonCreateConfigError)), false, false},
		"creation fails":                   {with(failed(ReasonStartError)), false, true},
		"has run with this reason": {
			with(Container{Newest: Attempt{Exited: now, Exit: Exit{Reason: ReasonCreateConfigError}}}), false, true,
		},
		"runs":           {with(running(Probes{})), false, true},
		"is starting up": {with(running(Probes{})), true, false},
		"has started up": {with(running(Probes{Startup: ProbeStatus{Verdict: VerdictSuccess}})), true, true},
	} {
		c := spec.Container{Name: "app"}
		if test.startup {
			c.StartupProbe = &spec.Probe{}
		}
		if got := test.facts.unreadyCounts(&spec.Pod{Containers: []spec.Container{c}}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
