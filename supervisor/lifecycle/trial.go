package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
)

// TrialBegun reports a request that starts the pod, restarts it or changes its definition. It replaces the trial before.
type TrialBegun struct{ Trial Trial }

func (e TrialBegun) apply(f *Facts) {
	e.Trial.N = f.Trial.N + 1
	f.Trial = e.Trial
}

// TrialKept reports that no earlier definition replaces this one if it fails, or has failed: its containers are restarted.
type TrialKept struct{ At Instant }

func (e TrialKept) apply(f *Facts) { f.Trial.RollsBack = false }

// TimeTrial begins the time in which the pod must become ready: what the request replaces has stopped. See [RecordOnly].
type TimeTrial struct{}

func (TimeTrial) issued(f *Facts, at Instant) { f.Trial.Due = at.Add(f.Trial.Within) }

func (TimeTrial) failed(*Facts, Failure, Instant) {}

// PassTrial records that the pod was ready for the minimum ready time. See [RecordOnly].
type PassTrial struct{}

func (PassTrial) issued(f *Facts, at Instant) { f.Trial.Passed = at }

func (PassTrial) failed(*Facts, Failure, Instant) {}

// FailTrial records that the trial has failed. See [RecordOnly].
type FailTrial struct{ Message string }

func (a FailTrial) issued(f *Facts, at Instant) { f.Trial.Failed, f.Trial.Message = at, a.Message }

func (FailTrial) failed(*Facts, Failure, Instant) {}

// tryOut records what has become of the trial. It comes before everything that starts containers, so that what is rolled back is not
// started again.
func (p *plan) tryOut() {
	t := &p.facts.Trial
	if t.Since.IsZero() || !t.Passed.IsZero() || !p.facts.Stop.Requested.IsZero() || p.facts.Restart.pending() {
		return
	}
	why := ""
	if t.Failed.IsZero() {
		why = failedRun(p.pod, p.facts)
	}
	v := view{pod: p.pod, facts: p.facts, now: p.now}
	switch {
	case why != "":
	case t.Holds(), !p.facts.EngineUnavailable.IsZero(): // what runs is not known
	case v.ready(false) && p.facts.current():
		if p.due(p.facts.readySince(p.pod).Add(t.MinReady)) {
			p.do(PassTrial{})
		}
	case t.Within == 0 || !t.Failed.IsZero() || finished(p.pod, p.facts) || p.facts.replacing():
	case t.Due.IsZero():
		p.do(TimeTrial{})
	case p.due(t.Due) && v.ready(false) && p.facts.resizing():
		why = suffixed(fmt.Sprintf("%s was not completed within %v", p.facts.resizeSubject(), t.Within), p.facts.Resize.Message)
	case p.due(t.Due):
		why = suffixed(fmt.Sprintf("the pod was not ready within %v", t.Within), v.readyNow(false).Message)
	}
	if why != "" {
		p.do(FailTrial{Message: why})
	}
	p.held = t.Holds() || why != "" && t.RollsBack
}

// replacing reports whether a run that a newer one replaces, or that the pod does not have any more, has not stopped.
func (f *Facts) replacing() bool {
	for name, c := range f.Containers {
		if a := &c.Newest; a.live() && (c.Replaced.includes(a) || f.removed(name)) {
			return true
		}
	}
	return false
}

// current reports whether the pod runs its definition only: no run of an earlier one has to stop or to be resized.
func (f *Facts) current() bool {
	if len(f.Outgoing) > 0 || f.resizing() {
		return false
	}
	for _, c := range f.Containers {
		if c.Replaced.includes(&c.Newest) {
			return false
		}
	}
	return true
}

// readySince returns since when a pod is ready that is ready now, as far as its trial is concerned: not before its request, nor before its
// failure, nor before its resize.
func (f *Facts) readySince(pod *spec.Pod) Instant {
	since := later(f.Trial.Since, f.Trial.Failed)
	if f.Resize.Sandbox == f.Sandbox.N {
		since = later(since, f.Resize.Done)
	}
	for c := range containersOf(pod) {
		a := &f.Container(c.Name).Newest
		for _, at := range []Instant{a.Started, a.PostStart.Done, a.Probes.Startup.At, a.Probes.Readiness.At} {
			since = later(since, at)
		}
	}
	for _, g := range pod.ReadinessGates {
		since = later(since, f.Conditions[ConditionType(g.ConditionType)].At)
	}
	return since
}

// failedRun describes the first run that has failed since the request of the trial; empty: there is none.
func failedRun(pod *spec.Pod, f *Facts) string {
	for c := range containersOf(pod) {
		h := f.Container(c.Name)
		for _, a := range []*Attempt{&h.Previous, &h.Newest} {
			if text := a.failure(f.Trial.Since); text != "" {
				return fmt.Sprintf("container %q %s", c.Name, text)
			}
		}
	}
	return ""
}

// notFailures are reasons for which a run ends although its definition may be good.
var notFailures = []Reason{ReasonUnknown, ReasonStatusUnknown}

// failure describes why a run has failed since an instant; empty: it has not, or not because of its definition. A run that is stopped
// because a probe or its postStart hook failed has failed whatever its exit code, also if a new definition has changed only the probe.
func (a *Attempt) failure(since Instant) string {
	stopped := map[Reason]string{
		ReasonLivenessProbe:       "was stopped because its liveness probe failed",
		ReasonStartupProbe:        "was stopped because its startup probe failed",
		ReasonFailedPostStartHook: "was stopped because its postStart hook failed",
	}[a.StopReason]
	switch {
	case a.Exited.IsZero() || slices.Contains(notFailures, a.Exit.Reason):
		return ""
	case stopped != "" && !cmp.Or(a.StopRequested, a.TerminationRequested, a.Requested).Before(since):
		return stopped
	case a.StopReason != "" || a.Exit.Code == 0 || a.Requested.Before(since):
		return ""
	case a.Exit.Reason == ReasonStartError:
		return "could not be started: " + a.Exit.Message
	case a.Exit.Reason == ReasonOOMKilled:
		return "was OOM-killed"
	}
	return fmt.Sprintf("exited with code %d", a.Exit.Code)
}

// suffixed adds a message to a text, if there is one.
func suffixed(text, message string) string {
	if message != "" {
		text += ": " + message
	}
	return text
}

// OutcomeState is the state of an [Outcome].
type OutcomeState string

// The states.
const (
	OutcomeProgressing OutcomeState = "Progressing" // the pod is not ready yet, or not any more
	OutcomeReady       OutcomeState = "Ready"       // it is ready, and must stay so for the minimum ready time
	OutcomeComplete    OutcomeState = "Complete"    // it is ready and has stayed so, or has succeeded
	OutcomeFailed      OutcomeState = "Failed"      // a run has failed before, the pod was not ready in time or has failed, or must restart
)

// Outcome is what became of the newest request that has started the pod, restarted it or changed its definition.
type Outcome struct {
	State   OutcomeState
	Message string // why it is not complete, for people
}

// OutcomeOf returns what became of the newest request. The status is that of [StatusOf].
func OutcomeOf(pod *spec.Pod, f Facts, s *Status) Outcome {
	t := &f.Trial
	ready := Condition{}
	if i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == PodReady }); i >= 0 {
		ready = s.Conditions[i]
	}
	switch over := s.Phase.Terminal() && f.Idle(); {
	case f.Restart.pending():
		return Outcome{OutcomeProgressing, "the pod is being restarted"}
	case s.Phase == PhaseSucceeded, over && f.Stop.Reason == ReasonJobComplete:
		return Outcome{State: OutcomeComplete}
	case over:
		return Outcome{OutcomeFailed, podFailed(s, t.Message)}
	case !t.Failed.IsZero() && t.Passed.IsZero():
		return Outcome{OutcomeFailed, t.Message}
	case ready.Status == conditionTrue && f.resizing():
		o := Outcome{OutcomeProgressing, suffixed(f.resizeSubject()+" is not complete", f.Resize.Message)}
		if f.Resize.Reason == ReasonInfeasible {
			o.State = OutcomeFailed
		}
		return o
	case ready.Status != conditionTrue || !f.current():
		return Outcome{OutcomeProgressing, cmp.Or(ready.Message, string(ready.Reason))}
	case t.Since.IsZero() || !t.Passed.IsZero():
		return Outcome{State: OutcomeComplete}
	}
	return Outcome{OutcomeReady, fmt.Sprintf("the pod is ready and must stay so for %v", t.MinReady)}
}

// podFailed describes a pod that has failed, because of a run if why is not empty.
func podFailed(s *Status, why string) string {
	text := "the pod failed"
	switch {
	case s.Reason != "":
		text += " (" + string(s.Reason) + ")"
	case s.Message == "" && why != "":
		return why
	}
	if why = cmp.Or(s.Message, why); why != "" {
		text += ": " + why
	}
	return text
}
