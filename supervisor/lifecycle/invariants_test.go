package lifecycle_test

import (
	"cmp"
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

// invariants checks every step of a pod's life. docs/design/lifecycle.md lists the invariants.
type invariants struct {
	pod    *spec.Pod
	status lifecycle.Status // the newest
	life   int
	runs   map[lifecycle.Ref]bool // that were started, without their rounds
	err    error
}

func (v *invariants) violation(format string, args ...any) {
	v.err = errors.Join(v.err, fmt.Errorf(format, args...))
}

// step checks one step and returns the violations.
func (v *invariants) step(s lifecycletest.Step) error {
	v.err, v.pod = nil, s.Pod
	switch e := s.Event.(type) {
	case nil:
		v.decision(s)
		v.statusOf(s)
	case lifecycle.Issued:
		v.issued(s.Before, e.Action, s.Now)
	case lifecycle.RestartRequested, lifecycle.ContainerRestartRequested, lifecycle.DefinitionChanged:
		v.status = lifecycle.Status{} // a pod that has completed may run again
	case lifecycle.ContainerRemoved: // a simulation computes no status after it
		before, after := lifecycle.StatusOf(v.pod, s.Before, s.Now), lifecycle.StatusOf(v.pod, s.After, s.Now)
		if !reflect.DeepEqual(before, after) {
			v.violation("the removal of %v changes the status from %+v to %+v", e.Ref, before, after)
		}
	}
	if s.Event != nil { // a decision has changed nothing since
		v.exact(s.After)
		v.counted(s)
	}
	if v.err != nil {
		return fmt.Errorf("%v: %#v: %w", s.Since, s.Event, v.err)
	}
	return nil
}

// failures returns the number of failed runs that count for backoffLimit.
func (v *invariants) failures(f lifecycle.Facts) (n int) {
	for _, c := range v.pod.InitContainers {
		if !c.IsSidecar() {
			n += f.Container(c.Name).Failures + f.Container(c.Name).OOMKills
		}
	}
	for _, c := range v.pod.Containers {
		n += f.Container(c.Name).Failures
	}
	return n
}

// limit checks that no container of a pod is started that has failed too often.
func (v *invariants) limit(f lifecycle.Facts, a lifecycle.StartContainer) {
	limit := v.pod.BackoffLimit
	if n := v.failures(f); limit != nil && n > int(*limit) && (v.pod.Retries() || v.pod.RestartPolicy == onFailure) {
		v.violation("%v is started after %d failures, the limit is %d", a.Ref, n, *limit)
	}
}

// lost reports whether a run was lost with its sandbox, or it is not known how it ended.
func lost(r *lifecycle.Attempt) bool {
	return r.StopReason == lifecycle.ReasonSandboxChanged || r.Exit.Reason == lifecycle.ReasonUnknown ||
		r.Exit.Reason == lifecycle.ReasonStatusUnknown
}

// retried checks that a pod is retried after the back-off of a Job: 10 s, doubled with each failure, at most 6 min. A run that was lost has
// not failed.
func (v *invariants) retried(f lifecycle.Facts, a lifecycle.StartRound, now lifecycle.Instant) {
	n, r := v.failures(f), attempt(f, a.By)
	if !v.pod.Retries() || n == 0 || r == nil || lost(r) {
		return
	}
	delay := 6 * time.Minute
	if n < 6 {
		delay = 10 * time.Second << (n - 1)
	}
	if waited := now.Sub(r.Exited); waited < delay {
		v.violation("round %d is started %v after the exit of %v, the back-off after %d failures is %v", a.Round, waited, a.By, n, delay)
	}
}

// counted checks that a run that fails by itself is counted when it terminates.
func (v *invariants) counted(s lifecycletest.Step) {
	for name, after := range s.After.Containers {
		before, r := s.Before.Container(name), after.Newest
		if r.Ref != before.Newest.Ref || r.Exited.IsZero() || !before.Newest.Exited.IsZero() || r.StopReason != "" || lost(&r) {
			continue
		}
		want := before.Failures
		if r.Exit.Code != 0 {
			want++
		}
		if after.Failures != want {
			v.violation("%v has terminated with %+v after %d failures, %d are counted", r.Ref, r.Exit, before.Failures, after.Failures)
		}
		if after.Exits != before.Exits+1 {
			v.violation("%v has terminated with %+v after %d exits, %d are counted", r.Ref, r.Exit, before.Exits, after.Exits)
		}
	}
}

// decision checks that Decide is deterministic, does not change its arguments, and wakes up in the future.
func (v *invariants) decision(s lifecycletest.Step) {
	before := text(s.Before) + text(v.pod)
	again := lifecycle.Decide(v.pod, s.Before, s.Now)
	if !reflect.DeepEqual(again, s.Decision) {
		v.violation("decision is %v, repeated: %v", s.Decision, again)
	}
	if after := text(s.Before) + text(v.pod); after != before {
		v.violation("Decide changed its arguments")
	}
	if w := s.Decision.Wake; !w.IsZero() && !s.Now.Before(w) {
		v.violation("wake-up time %v is not after %v", w, s.Now)
	}
	seen := map[lifecycle.Action]bool{}
	for _, a := range s.Decision.Actions {
		if seen[a] {
			v.violation("%#v is decided twice", a)
		}
		seen[a] = true
	}
	v.ordered(s)
	v.watched(s)
}

// issued checks that an action is allowed by the facts.
func (v *invariants) issued(f lifecycle.Facts, a lifecycle.Action, now lifecycle.Instant) {
	v.tried(f, a, now)
	stopping := !f.Stop.Requested.IsZero() || !f.Restart.Requested.IsZero()
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		if stopping {
			v.violation("sandbox started in a stopping pod")
		}
		v.waited(f)
	case lifecycle.PullImage, lifecycle.FindImage:
		if stopping {
			v.violation("image pulled in a stopping pod")
		}
	case lifecycle.StartContainer:
		if stopping {
			v.violation("container started in a stopping pod")
		}
		v.start(f, a)
		v.restart(f, a.Container)
		v.limit(f, a)
	case lifecycle.StartRound:
		v.retried(f, a, now)
	case lifecycle.RunPostStart:
		if stopping {
			v.violation("postStart hook run in a stopping pod")
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
			v.violation("%v is removed but has not terminated", a.Ref)
		}
	}
}

// waited checks that the sandbox of a pod is started only after every condition that the pod waits for was met in this boot.
func (v *invariants) waited(f lifecycle.Facts) {
	for _, condition := range v.pod.Conditions() {
		if f.Wait.Ended.IsZero() && f.Wait.Conditions[condition].Met.IsZero() {
			v.violation("sandbox started before %s was met", condition)
		}
	}
}

// watched checks that conditions are watched only while the pod waits for them, each once.
func (v *invariants) watched(s lifecycletest.Step) {
	seen := map[lifecycle.WaitRef]bool{}
	for _, ref := range s.Decision.Waits {
		w := s.After.Wait
		switch {
		case seen[ref]:
			v.violation("%v is watched twice", ref)
		case !s.After.Stop.Requested.IsZero():
			v.violation("%v is watched in a stopping pod", ref)
		case ref.Wait != w.N || !w.Ended.IsZero() || !w.Conditions[ref.Condition].Met.IsZero():
			v.violation("%v is watched although the wait is %+v", ref, w)
		}
		seen[ref] = true
	}
}

// start checks that a container has at most one live attempt with a number that is not used twice, that it is started in a ready sandbox,
// and that no app container is started before the init containers have completed.
func (v *invariants) start(f lifecycle.Facts, a lifecycle.StartContainer) {
	newest := f.Container(a.Container).Newest
	unique := lifecycle.Ref{Container: a.Container, Attempt: a.Attempt}
	live := newest.Attempt > 0 && newest.Exited.IsZero() && newest.CreateFailed.IsZero()
	switch again := a.Ref == newest.Ref; {
	case again && newest.Retry.IsZero():
		v.violation("%v is started twice", a.Ref)
	case !again && live:
		v.violation("%v is started while %v is running", a.Ref, newest.Ref)
	case !again && newest.Attempt > 0 && a.Attempt != newest.Attempt+1, !again && v.runs[unique]:
		v.violation("%v is started after %v", a.Ref, newest.Ref)
	case a.Sandbox != f.SandboxReady() || a.Round != f.Round:
		v.violation("%v is started in sandbox %d and round %d", a, f.SandboxReady(), f.Round)
	}
	if v.runs == nil {
		v.runs = map[lifecycle.Ref]bool{}
	}
	v.runs[unique] = true
	if slices.ContainsFunc(f.Ephemeral, func(c spec.Container) bool { return c.Name == a.Container }) {
		if !newest.Started.IsZero() || !newest.Exited.IsZero() {
			v.violation("%v is started although %v has completed", a, newest.Ref)
		}
		return
	}
	for i := range v.pod.InitContainers {
		c := &v.pod.InitContainers[i]
		if c.Name == a.Container {
			return
		}
		r := f.Container(c.Name).Newest
		if c.IsSidecar() {
			if (r.Round != f.Round || !v.started(c, &r)) && !v.reached(f, i+1) {
				v.violation("%v is started before sidecar %s", a.Ref, c.Name)
			}
			continue
		}
		if incomplete := r.Round != f.Round || r.Exited.IsZero() || r.Exit.Code != 0 ||
			r.Exit.Reason == lifecycle.ReasonOOMKilled; incomplete &&
			!v.reached(f, i+1) {
			v.violation("%v is started before %s has completed", a.Ref, c.Name)
		}
	}
}

// restart checks that the pod has the container, and that a container that must not restart has been requested to.
func (v *invariants) restart(f lifecycle.Facts, name string) {
	c, newest := v.pod.Container(name), f.Container(name).Newest
	if c == nil {
		if !slices.ContainsFunc(f.Ephemeral, func(c spec.Container) bool { return c.Name == name }) {
			v.violation("%s is started, which the pod does not have", name)
		}
		return
	}
	never := cmp.Or(c.RestartPolicy, v.pod.RestartPolicy) == spec.RestartNever && len(c.RestartPolicyRules) == 0
	app := slices.ContainsFunc(v.pod.Containers, func(c spec.Container) bool { return c.Name == name })
	ran := !newest.Started.IsZero() || !newest.Exited.IsZero()
	requested := newest.Attempt <= f.Container(name).Replaced.Attempt || newest.Round < max(f.Again, f.Restarted)
	if never && app && ran && !requested && newest.CreateFailed.IsZero() {
		v.violation("%s is started after %v although its restart policy is Never", name, newest.Ref)
	}
	limit, exits := c.MaxRestarts, f.Container(name).Exits
	if limit != nil && !requested && exits > int(*limit) && !newest.Exited.IsZero() {
		v.violation("%s is started after %v and %d exits, its maxRestarts is %d", name, newest.Ref, exits, *limit)
	}
}

// stopReason checks that a run is stopped for a reason that the facts have.
func (v *invariants) stopReason(f lifecycle.Facts, ref lifecycle.Ref, why lifecycle.Reason) {
	requested := ref.Attempt <= f.Container(ref.Container).Replaced.Attempt
	removed := v.pod.Container(ref.Container) == nil
	switch why {
	case lifecycle.ReasonRestartRequested:
		if !requested && f.Restart.Requested.IsZero() && f.Stop.Requested.IsZero() {
			v.violation("%v is stopped for a restart that was not requested", ref)
		}
	case lifecycle.ReasonDefinitionChanged:
		if !requested {
			v.violation("%v is stopped although its definition is unchanged", ref)
		}
	case lifecycle.ReasonDeviceRemoved:
		if !requested || attempt(f, ref).DeviceRemoved == "" {
			v.violation("%v is stopped although it has all of its devices", ref)
		}
	case lifecycle.ReasonContainerRemoved:
		if !removed && !requested {
			v.violation("%v is stopped although it was not removed", ref)
		}
	}
}

// reached reports whether a later init container, or an app container, was requested in this round.
func (v *invariants) reached(f lifecycle.Facts, from int) bool {
	behind := append(slices.Clone(v.pod.InitContainers[from:]), v.pod.Containers...)
	return slices.ContainsFunc(behind, func(c spec.Container) bool { return f.Container(c.Name).Newest.Round == f.Round })
}

// started reports whether a sidecar has passed its postStart hook and its startup probe.
func (v *invariants) started(c *spec.Container, r *lifecycle.Attempt) bool {
	return !r.Started.IsZero() && r.Exited.IsZero() && v.hooked(c.Name, *r) &&
		(c.StartupProbe == nil || r.Probes.Startup.Verdict == good)
}

func (v *invariants) signal(f lifecycle.Facts, ref lifecycle.Ref) {
	r := attempt(f, ref)
	if r == nil || !r.Exited.IsZero() || !r.CreateFailed.IsZero() || (r.Started.IsZero() && r.Retry.IsZero()) {
		v.violation("signal to %v, which is not running", ref)
	}
}

// preStop checks that the hook runs before every signal, within the grace period, and not without one.
func (v *invariants) preStop(f lifecycle.Facts, a lifecycle.RunPreStop) {
	v.signal(f, a.Ref)
	v.stopReason(f, a.Ref, a.Reason)
	r := attempt(f, a.Ref)
	if r != nil && (!r.StopRequested.IsZero() || !r.KillRequested.IsZero() || f.Stop.Force) {
		v.violation("preStop hook of %v is run after a signal", a.Ref)
	}
	if a.Limit <= 0 {
		v.violation("preStop hook has limit %v", a.Limit)
	}
}

// stopSignal checks that the stop signal is not sent before the preStop hook is done or the grace period has passed, and that at
// least 2 s are left.
func (v *invariants) stopSignal(f lifecycle.Facts, a lifecycle.StopContainer, now lifecycle.Instant) {
	v.signal(f, a.Ref)
	r := attempt(f, a.Ref)
	v.order(f, a, now)
	v.stopReason(f, a.Ref, a.Reason)
	if a.Grace < 2*time.Second {
		v.violation("%v has grace period %v", a.Ref, a.Grace)
	}
	if r == nil || !r.StopRequested.IsZero() || r.PreStop.Requested.IsZero() || !r.PreStop.Done.IsZero() {
		return
	}
	over := !now.Before(r.TerminationRequested.Add(r.TerminationGrace)) || a.Grace == 2*time.Second && v.restartsAll(f)
	if !over && (f.Stop.Requested.IsZero() || now.Before(f.Stop.Deadline)) {
		v.violation("%v gets its stop signal during its preStop hook", a.Ref)
	}
}

// order checks that a sidecar in a stopped pod gets no signal before the following containers have terminated, unless the grace
// period has passed.
func (v *invariants) order(f lifecycle.Facts, a lifecycle.StopContainer, now lifecycle.Instant) {
	if f.Stop.Requested.IsZero() || !now.Before(f.Stop.Deadline) {
		return
	}
	list := v.pod.InitContainers
	i := slices.IndexFunc(list, func(c spec.Container) bool { return c.Name == a.Container && c.IsSidecar() })
	if r := f.Container(a.Container).Newest; i < 0 ||
		!r.TerminationRequested.IsZero() && !now.Before(r.TerminationRequested.Add(r.TerminationGrace)) {
		return
	}
	for _, c := range append(slices.Clone(list[i+1:]), v.pod.Containers...) {
		init := slices.ContainsFunc(list, func(other spec.Container) bool { return other.Name == c.Name })
		r := f.Container(c.Name).Newest
		if live := r.Attempt > 0 && r.Exited.IsZero() && r.CreateFailed.IsZero(); live && (!init || c.IsSidecar()) {
			v.violation("%v gets its stop signal while %v is running", a.Ref, r.Ref)
		}
	}
}

// restartsAll reports whether an exit in this round matches a RestartAllContainers rule.
func (v *invariants) restartsAll(f lifecycle.Facts) bool {
	for _, c := range append(slices.Clone(v.pod.InitContainers), v.pod.Containers...) {
		r := f.Container(c.Name).Newest
		for _, rule := range c.RestartPolicyRules {
			if r.Round == f.Round && !r.Exited.IsZero() && slices.Contains(rule.ExitCodes.Values, int32(r.Exit.Code)) {
				return true
			}
		}
	}
	return false
}

// ordered checks that probes run for running containers only, the startup probe alone, and only readiness during termination.
func (v *invariants) ordered(s lifecycletest.Step) {
	seen := map[lifecycle.ProbeRef]bool{}
	for _, o := range s.Decision.Probes {
		a := attempt(s.After, o.Ref)
		switch {
		case seen[o.ProbeRef]:
			v.violation("%v is ordered twice", o.ProbeRef)
		case a == nil || a.Started.IsZero() || !a.Exited.IsZero():
			v.violation("%v is ordered for a container that is not running", o.ProbeRef)
		case o.Kind != readiness && (!s.After.Stop.Requested.IsZero() || !a.StopRequested.IsZero() || !a.PreStop.Requested.IsZero()):
			v.violation("%v is ordered during termination", o.ProbeRef)
		}
		seen[o.ProbeRef] = true
	}
	for ref := range seen {
		if ref.Kind != startup && seen[lifecycle.ProbeRef{Ref: ref.Ref, Kind: startup}] {
			v.violation("%v is ordered with the startup probe", ref)
		}
	}
}

func attempt(f lifecycle.Facts, ref lifecycle.Ref) *lifecycle.Attempt {
	c := f.Container(ref.Container)
	for _, a := range []*lifecycle.Attempt{&c.Newest, &c.Previous} {
		if a.Ref == ref {
			return a
		}
	}
	return nil
}

// exact checks that facts do not change in a round trip through JSON.
func (v *invariants) exact(f lifecycle.Facts) {
	var again lifecycle.Facts
	data := text(f)
	if err := json.Unmarshal([]byte(data), &again); err != nil {
		v.violation("read facts: %w", err)
	}
	if len(f.Containers) == 0 {
		f.Containers = nil
	}
	if !reflect.DeepEqual(f, again) {
		v.violation("facts %s\nread back as %s", data, text(again))
	}
}

// statusOf checks that the status agrees with the facts, and that final states do not change.
func (v *invariants) statusOf(s lifecycletest.Step) {
	old, now := v.status, lifecycle.StatusOf(v.pod, s.After, s.Now)
	if s.Supervisor != v.life { // facts that were not saved are learned again
		old.InitContainerStatuses, old.ContainerStatuses = nil, nil
	}
	v.status, v.life = now, s.Supervisor
	if old.Phase.Terminal() && now.Phase != old.Phase {
		v.violation("phase changed from %s to %s", old.Phase, now.Phase)
	}
	if now.Phase == lifecycle.PhaseFailed && s.After.Stop.Reason != now.Reason {
		v.violation("reason of the failure is %q, in the status %q", s.After.Stop.Reason, now.Reason)
	}
	if now.Phase == lifecycle.PhaseSucceeded {
		for i := range v.pod.Containers {
			h := s.After.Containers[v.pod.Containers[i].Name]
			r := h.Newest
			if !r.CreateFailed.IsZero() { // it was no run: the previous one counts
				r = h.Previous
			}
			if r.Exited.IsZero() || r.Exit.Code != 0 {
				v.violation("pod has succeeded but %s has not: %+v", v.pod.Containers[i].Name, r)
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
		r := f.Container(c.Name).Newest
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
			v.violation("%s has %d states", c.Name, states)
		case runs != (state.Running != nil):
			v.violation("%s: running is %v, status is %+v", c.Name, runs, state)
		case live && phase.Terminal():
			v.violation("%s is running in a pod in phase %s", c.Name, phase)
		case len(old) > 0 && c.RestartCount < old[i].RestartCount:
			v.violation("restart count of %s changed from %d to %d", c.Name, old[i].RestartCount, c.RestartCount)
		}
	}
}

// hooked reports whether a run's postStart hook does not delay other containers.
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
