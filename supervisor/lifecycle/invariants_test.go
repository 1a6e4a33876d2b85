package lifecycle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

// invariants looks at every step of a pod's life. The list is that of docs/design/lifecycle.md.
type invariants struct {
	pod    *spec.Pod
	status lifecycle.Status // the newest
	life   int
	err    error
}

func (v *invariants) wrong(format string, args ...any) {
	v.err = errors.Join(v.err, fmt.Errorf(format, args...))
}

// step checks one step and returns what is wrong with it.
func (v *invariants) step(s lifecycletest.Step) error {
	v.err = nil
	switch e := s.Event.(type) {
	case nil:
		v.decision(s)
		v.statusOf(s)
	case lifecycle.Issued:
		v.issued(s.Before, e.Action, s.Now)
	}
	v.exact(s.After)
	if v.err != nil {
		return fmt.Errorf("%v: %#v: %w", s.Since, s.Event, v.err)
	}
	return nil
}

// decision: the same arguments give the same answer and are left as they were, and no wake is in the past or now.
func (v *invariants) decision(s lifecycletest.Step) {
	before := text(s.Before) + text(v.pod)
	again := lifecycle.Decide(v.pod, s.Before, s.Now)
	if !reflect.DeepEqual(again, s.Decision) {
		v.wrong("decided %v, and then %v", s.Decision, again)
	}
	if after := text(s.Before) + text(v.pod); after != before {
		v.wrong("Decide changed its arguments")
	}
	if w := s.Decision.Wake; !w.IsZero() && !s.Now.Before(w) {
		v.wrong("wake at %v, now is %v", w, s.Now)
	}
	seen := map[lifecycle.Action]bool{}
	for _, a := range s.Decision.Actions {
		if seen[a] {
			v.wrong("%#v twice in one decision", a)
		}
		seen[a] = true
	}
	v.ordered(s)
}

// issued: what may be asked for in the light of the facts.
func (v *invariants) issued(f lifecycle.Facts, a lifecycle.Action, now lifecycle.Instant) {
	stopping := !f.Stop.Requested.IsZero()
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		if stopping {
			v.wrong("a stopping pod gets a sandbox")
		}
	case lifecycle.PullImage, lifecycle.FindImage:
		if stopping {
			v.wrong("a stopping pod wants an image")
		}
	case lifecycle.StartContainer:
		if stopping {
			v.wrong("a stopping pod starts a container")
		}
		v.start(f, a)
	case lifecycle.RunPostStart:
		if stopping {
			v.wrong("a stopping pod runs a postStart hook")
		}
		v.signal(f, a.Ref)
	case lifecycle.RunPreStop:
		v.preStop(f, a)
	case lifecycle.StopContainer:
		v.stopSignal(f, a, now)
	case lifecycle.KillContainer:
		v.signal(f, a.Ref)
	case lifecycle.RemoveContainer:
		if r := attempt(f, a.Ref); r == nil || r.Exited.IsZero() {
			v.wrong("%v is removed and not over", a.Ref)
		}
	}
}

// start: never two live attempts of a container, none without a sandbox, no app container before init is done.
func (v *invariants) start(f lifecycle.Facts, a lifecycle.StartContainer) {
	newest := f.Containers[a.Container].Newest
	live := newest.Attempt > 0 && newest.Exited.IsZero() && newest.CreateFailed.IsZero()
	switch again := a.Ref == newest.Ref; {
	case again && newest.Retry.IsZero():
		v.wrong("%v is asked for twice", a.Ref)
	case !again && live:
		v.wrong("%v is asked for while %v lives", a.Ref, newest.Ref)
	case !again && a.Attempt != newest.Attempt+1:
		v.wrong("%v comes after %v", a.Ref, newest.Ref)
	case a.Sandbox != f.SandboxReady() || a.Round != f.Round:
		v.wrong("%v is asked for in sandbox %d and round %d", a, f.SandboxReady(), f.Round)
	}
	if slices.ContainsFunc(f.Ephemeral, func(c spec.Container) bool { return c.Name == a.Container }) {
		if !newest.Started.IsZero() || !newest.Exited.IsZero() {
			v.wrong("%v is asked for, and %v has run", a, newest.Ref)
		}
		return
	}
	for i := range v.pod.InitContainers {
		c := &v.pod.InitContainers[i]
		if c.Name == a.Container {
			return
		}
		r := f.Containers[c.Name].Newest
		if c.IsSidecar() {
			if r.Round != f.Round || !v.started(c, &r) && !v.reached(f, i+1) {
				v.wrong("%v is asked for before the sidecar %s has started", a.Ref, c.Name)
			}
			continue
		}
		if r.Round != f.Round || r.Exited.IsZero() || r.Exit.Code != 0 || r.Exit.Reason == lifecycle.ReasonOOMKilled {
			v.wrong("%v is asked for before %s is done", a.Ref, c.Name)
		}
	}
}

// reached reports whether any container from the one at the given place among the init containers on has been asked for in
// this round.
func (v *invariants) reached(f lifecycle.Facts, from int) bool {
	behind := append(slices.Clone(v.pod.InitContainers[from:]), v.pod.Containers...)
	return slices.ContainsFunc(behind, func(c spec.Container) bool { return f.Containers[c.Name].Newest.Round == f.Round })
}

// started reports whether a run of a container that keeps running is past its hook and its startup probe.
func (v *invariants) started(c *spec.Container, r *lifecycle.Attempt) bool {
	return !r.Started.IsZero() && r.Exited.IsZero() && v.hooked(c.Name, *r) &&
		(c.StartupProbe == nil || r.Probes.Startup.Verdict == good)
}

func (v *invariants) signal(f lifecycle.Facts, ref lifecycle.Ref) {
	r := attempt(f, ref)
	if r == nil || !r.Exited.IsZero() || !r.CreateFailed.IsZero() || (r.Started.IsZero() && r.Retry.IsZero()) {
		v.wrong("a signal to %v, which does not run", ref)
	}
}

// preStop: a hook before every signal, within the grace period, and not where there is none.
func (v *invariants) preStop(f lifecycle.Facts, a lifecycle.RunPreStop) {
	v.signal(f, a.Ref)
	r := attempt(f, a.Ref)
	if r != nil && (!r.StopRequested.IsZero() || !r.KillRequested.IsZero() || f.Stop.Force) {
		v.wrong("the preStop hook of %v comes after a signal", a.Ref)
	}
	if a.Limit <= 0 {
		v.wrong("a preStop hook within %v", a.Limit)
	}
}

// stopSignal: not before the preStop hook is done or its time is over, and never with less than 2 s to go.
func (v *invariants) stopSignal(f lifecycle.Facts, a lifecycle.StopContainer, now lifecycle.Instant) {
	v.signal(f, a.Ref)
	r := attempt(f, a.Ref)
	v.order(f, a, now)
	if a.Grace < 2*time.Second {
		v.wrong("%v has %v", a.Ref, a.Grace)
	}
	if r == nil || !r.StopRequested.IsZero() || r.PreStop.Requested.IsZero() || !r.PreStop.Done.IsZero() {
		return
	}
	over := !now.Before(r.TerminationRequested.Add(r.TerminationGrace)) || a.Grace == 2*time.Second && v.restartsAll(f)
	if !over && (f.Stop.Requested.IsZero() || now.Before(f.Stop.Deadline)) {
		v.wrong("%v gets its stop signal in the middle of its preStop hook", a.Ref)
	}
}

// order: in a pod that was stopped a sidecar has no signal before everything behind it has ended, but when the time is over.
func (v *invariants) order(f lifecycle.Facts, a lifecycle.StopContainer, now lifecycle.Instant) {
	if f.Stop.Requested.IsZero() || !now.Before(f.Stop.Deadline) {
		return
	}
	list := v.pod.InitContainers
	i := slices.IndexFunc(list, func(c spec.Container) bool { return c.Name == a.Container && c.IsSidecar() })
	if r := f.Containers[a.Container].Newest; i < 0 || !r.TerminationRequested.IsZero() && !now.Before(r.TerminationRequested.Add(r.TerminationGrace)) {
		return
	}
	for _, c := range append(slices.Clone(list[i+1:]), v.pod.Containers...) {
		init := slices.ContainsFunc(list, func(other spec.Container) bool { return other.Name == c.Name })
		r := f.Containers[c.Name].Newest
		if live := r.Attempt > 0 && r.Exited.IsZero() && r.CreateFailed.IsZero(); live && (!init || c.IsSidecar()) {
			v.wrong("%v gets its stop signal while %v lives", a.Ref, r.Ref)
		}
	}
}

// restartsAll reports whether any run of this round has ended with a code that a rule for all containers names.
func (v *invariants) restartsAll(f lifecycle.Facts) bool {
	for _, c := range append(slices.Clone(v.pod.InitContainers), v.pod.Containers...) {
		r := f.Containers[c.Name].Newest
		for _, rule := range c.RestartPolicyRules {
			if r.Round == f.Round && !r.Exited.IsZero() && slices.Contains(rule.ExitCodes.Values, int32(r.Exit.Code)) {
				return true
			}
		}
	}
	return false
}

// ordered: probes are asked of what runs, the startup probe alone, and of what is to end for its readiness only.
func (v *invariants) ordered(s lifecycletest.Step) {
	seen := map[lifecycle.ProbeRef]bool{}
	for _, o := range s.Decision.Probes {
		a := attempt(s.After, o.Ref)
		switch {
		case seen[o.ProbeRef]:
			v.wrong("%v twice in one decision", o.ProbeRef)
		case a == nil || a.Started.IsZero() || !a.Exited.IsZero():
			v.wrong("%v asks what does not run", o.ProbeRef)
		case o.Kind != readiness && (!s.After.Stop.Requested.IsZero() || !a.StopRequested.IsZero() || !a.PreStop.Requested.IsZero()):
			v.wrong("%v of what is to end", o.ProbeRef)
		}
		seen[o.ProbeRef] = true
	}
	for ref := range seen {
		if ref.Kind != startup && seen[lifecycle.ProbeRef{Ref: ref.Ref, Kind: startup}] {
			v.wrong("%v beside the startup probe", ref)
		}
	}
}

func attempt(f lifecycle.Facts, ref lifecycle.Ref) *lifecycle.Attempt {
	c := f.Containers[ref.Container]
	for _, a := range []*lifecycle.Attempt{&c.Newest, &c.Previous} {
		if a.Ref == ref {
			return a
		}
	}
	return nil
}

// exact: facts are the same after a round trip through JSON.
func (v *invariants) exact(f lifecycle.Facts) {
	var again lifecycle.Facts
	data := text(f)
	if err := json.Unmarshal([]byte(data), &again); err != nil {
		v.wrong("read facts: %w", err)
	}
	if len(f.Containers) == 0 {
		f.Containers = nil
	}
	if !reflect.DeepEqual(f, again) {
		v.wrong("facts %s\nread back as %s", data, text(again))
	}
}

// statusOf: what the status says is so, and it does not go back on what it said.
func (v *invariants) statusOf(s lifecycletest.Step) {
	old, now := v.status, lifecycle.StatusOf(v.pod, s.After, s.Now)
	if s.Life != v.life { // what was not saved is learned again
		old.InitContainerStatuses, old.ContainerStatuses = nil, nil
	}
	v.status, v.life = now, s.Life
	if old.Phase.Terminal() && now.Phase != old.Phase {
		v.wrong("the phase was %s and is %s", old.Phase, now.Phase)
	}
	if now.Phase == lifecycle.PhaseFailed && s.After.Stop.Reason != now.Reason {
		v.wrong("the pod failed for %q, and its status says %q", s.After.Stop.Reason, now.Reason)
	}
	if now.Phase == lifecycle.PhaseSucceeded {
		for i := range v.pod.Containers {
			h := s.After.Containers[v.pod.Containers[i].Name]
			r := h.Newest
			if !r.CreateFailed.IsZero() { // it was no run: the one before counts
				r = h.Previous
			}
			if r.Exited.IsZero() || r.Exit.Code != 0 {
				v.wrong("the pod has succeeded, and %s has not: %+v", v.pod.Containers[i].Name, r)
			}
		}
	}
	v.containers(s.After, now.Phase, old.InitContainerStatuses, now.InitContainerStatuses)
	v.containers(s.After, now.Phase, old.ContainerStatuses, now.ContainerStatuses)
	v.containers(s.After, now.Phase, nil, now.EphemeralContainerStatuses)
}

func (v *invariants) containers(f lifecycle.Facts, phase lifecycle.Phase, old, now []lifecycle.ContainerStatus) {
	for i := range now {
		c, state := &now[i], now[i].State
		r := f.Containers[c.Name].Newest
		live := !r.Started.IsZero() && r.Exited.IsZero()
		runs := live && v.hooked(c.Name, r)
		states := 0
		for _, set := range []bool{state.Waiting != nil, state.Running != nil, state.Terminated != nil} {
			if set {
				states++
			}
		}
		switch {
		case states != 1:
			v.wrong("%s is in %d states", c.Name, states)
		case runs != (state.Running != nil):
			v.wrong("%s: running is %v, the status says %+v", c.Name, runs, state)
		case live && phase.Terminal():
			v.wrong("%s runs in a pod that is %s", c.Name, phase)
		case len(old) > 0 && c.RestartCount < old[i].RestartCount:
			v.wrong("%s had %d restarts and has %d", c.Name, old[i].RestartCount, c.RestartCount)
		}
	}
}

// hooked reports whether a run's postStart hook is no hindrance to it.
func (v *invariants) hooked(name string, r lifecycle.Attempt) bool {
	for _, c := range append(slices.Clone(v.pod.InitContainers), v.pod.Containers...) {
		if l := c.Lifecycle; c.Name == name && l != nil && l.PostStart != nil {
			return !r.PostStart.Done.IsZero() && !r.PostStart.Failed
		}
	}
	return true
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
