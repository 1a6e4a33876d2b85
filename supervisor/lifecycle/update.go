package lifecycle

import (
	"slices"

	"github.com/podstead/podstead/spec"
)

// RestartRequested requests to start the pod again in a new round, after everything that still runs has stopped. It replaces a
// request to stop the pod. It changes nothing if the pod is being deleted or if a restart is pending, other than that of an
// escalation.
type RestartRequested struct {
	By        string
	Redefined bool // see [Restart]
	// JobRun is [NextRun] of the pods of the Job; 0: the pod has none.
	JobRun int
	At     Instant
}

func (e RestartRequested) apply(f *Facts) {
	if f.Stop.Delete || f.Restart.pending() && f.Restart.By != EscalationBy {
		return
	}
	f.Stop, f.Escalation = Stop{}, Escalation{}
	if !e.Redefined { // otherwise what is started again takes part in the same run
		f.Job.startAgain(e.JobRun)
	}
	f.Restart = Restart{Requested: e.At, By: e.By, Redefined: e.Redefined}
}

// StartAgain opens a round after everything of the pod has stopped for a [RestartRequested]. Every container runs again, init
// containers too, and no delay of an earlier failure applies. Restart counts continue; failures count from 0, except after the shutdown
// of the host, and so do the restarts of maxRestarts, except for an escalation too. See [RecordOnly].
type StartAgain struct{ Round int }

func (a StartAgain) issued(f *Facts, at Instant) {
	counts, byEscalation := f.Restart.afterShutdown(), f.Restart.By == EscalationBy
	f.Round, f.Again, f.AgainAt, f.Restart = a.Round, a.Round, at, Restart{}
	f.Sandbox.Failures, f.Wait = 0, Wait{N: f.Wait.N} // the conditions are checked again
	f.Trial.startAgain()
	for name, c := range f.Containers {
		if !f.ephemeral(name) {
			c.resetDelays()
			if !counts {
				c.Failures, c.OOMKills = 0, 0
			}
			if !counts && !byEscalation {
				c.Exits = 0
			}
		}
	}
}

func (StartAgain) failed(*Facts, Failure, Instant) {}

// resetDelays ends the back-off of restarts and of pulls.
func (c *Container) resetDelays() {
	c.Backoff = Backoff{}
	if !c.Pull.inFlight() && c.Pull.Done.IsZero() {
		c.Pull = Pull{}
	}
}

// restartPod stops everything for a requested restart of the pod and opens a new round. It reports whether one is pending. The
// sandbox is replaced: its shim and its network start again with the pod, with the definition that the pod has then.
func (p *plan) restartPod() bool {
	if !p.facts.Restart.pending() {
		return false
	}
	why := ReasonRestartRequested
	if p.facts.Restart.Redefined {
		why = ReasonDefinitionChanged
	}
	if p.cancelPulls()+p.stopAll(why) > 0 {
		return true
	}
	switch s := &p.facts.Sandbox; {
	case s.inFlight():
	case s.mayExist():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	default:
		p.do(StartAgain{Round: p.facts.Round + 1})
	}
	return true
}

// maxOutgoing is the maximum number of removed containers that have not stopped yet.
const maxOutgoing = 64

// DefinitionChanged reports that the pod has another definition. Containers that it does not have any more are stopped with the
// hooks and the grace period of the earlier definition, then removed and forgotten. The next decision must use the definition To.
type DefinitionChanged struct {
	From, To *spec.Pod
	// Restarted are the containers of both definitions that must run again: [ContainerRestartRequested] for a changed definition.
	Restarted []string
	// Images are the staged images of containers, by name: their next run needs no pull.
	Images map[string]Image
	// MetadataOnly reports that nothing but labels, annotations and the content of images has changed.
	MetadataOnly bool
	At           Instant
}

// Fits reports whether the facts have room for the containers that the change removes.
func (e DefinitionChanged) Fits(f Facts) bool {
	removed := 0
	for i := range f.Outgoing {
		if f.Outgoing[i].Removed {
			removed++
		}
	}
	for c := range containersOf(e.From) {
		if e.To.Container(c.Name) == nil {
			removed++
		}
	}
	return removed <= maxOutgoing
}

func (e DefinitionChanged) apply(f *Facts) {
	f.Outgoing, f.Escalation = slices.Clone(f.Outgoing), Escalation{}
	if !e.MetadataOnly {
		f.Changes++
	}
	if job := e.From.Job; job != nil && (e.To.Job == nil || e.To.Job.Name != job.Name) {
		f.Job = JobPart{}
	}
	f.requestResize(e)
	for c := range containersOf(e.From) {
		switch {
		case e.To.Container(c.Name) == nil:
			f.goes(e.From, c, true)
		case slices.Contains(e.Restarted, c.Name):
			f.goes(e.From, c, false)
			f.renew(c.Name, ReasonDefinitionChanged)
		default:
			f.skipPostStart(c, e.To.Container(c.Name), e.At)
			f.probeAgain(c, e.To.Container(c.Name), e.At)
			f.resized(c, e.To.Container(c.Name))
		}
	}
	for c := range containersOf(e.To) {
		if o := f.outgoing(c.Name); o != nil && o.Removed { // added again before it was forgotten
			o.Removed = false
			f.renew(c.Name, ReasonDefinitionChanged)
		}
	}
	for name, image := range e.Images {
		if c := e.To.Container(name); c != nil {
			f.Stage(name, image, e.At)
		}
	}
}

// Stage records that the image of the next run of a container is present. The facts must not be shared yet.
func (f *Facts) Stage(container string, image Image, at Instant) {
	if f.Containers == nil {
		f.Containers = map[string]*Container{}
	}
	c := f.own(container)
	c.Pull = Pull{For: f.nextAttempt(c), Done: at}
	c.Image = image
}

// staged reports whether the image was present before a run needed it.
func (p *Pull) staged() bool { return p.Requested.IsZero() && p.Checked.IsZero() && !p.Done.IsZero() }

// goes keeps the definition of a container whose run is going to be stopped. A definition that is kept already is that of an older
// run, which has not stopped yet.
func (f *Facts) goes(pod *spec.Pod, c *spec.Container, removed bool) {
	h := f.Containers[c.Name]
	if h == nil || f.ephemeral(c.Name) {
		return
	}
	if o := f.earlier(c.Name, h.Newest.N()); o != nil {
		o.Removed = removed
		return
	}
	if !removed && !h.Newest.live() {
		return
	}
	f.dropOutgoing(c.Name)
	f.Outgoing = append(f.Outgoing, Outgoing{
		Container: *c, Attempt: h.Newest.N(), Grace: pod.TerminationGracePeriodSeconds.Duration(), Removed: removed,
	})
}

// skipPostStart records that a postStart hook, which a running container did not have, is not run before its next start, or that
// one that was removed has no outcome that counts. The caller cancels a hook that runs.
func (f *Facts) skipPostStart(from, to *spec.Container, at Instant) {
	h := f.Containers[from.Name]
	if h == nil || hasPostStart(from) == hasPostStart(to) || !h.Newest.live() || !h.Newest.PostStart.Done.IsZero() {
		return
	}
	h.Newest.PostStart = Hook{Requested: at, Done: at}
}

// probeAgain drops the result of a readiness probe that checks something else from now on: it says nothing about the new definition. A
// change of intervals and thresholds keeps it.
func (f *Facts) probeAgain(from, to *spec.Container, at Instant) {
	h := f.Containers[from.Name]
	if h == nil || to.ReadinessProbe == nil || checksSame(from, to) || !h.Newest.live() {
		return
	}
	h.Newest.Probes.Readiness = ProbeStatus{At: at}
}

// checksSame reports whether the readiness probes of two definitions check the same.
func checksSame(from, to *spec.Container) bool {
	a, b := from.ReadinessProbe, to.ReadinessProbe
	return a != nil && a.SameHandler(b) && (!b.NamesPort() || slices.Equal(from.Ports, to.Ports))
}

// ContainerRestartRequested requests to restart one container. A running one is stopped with its preStop hook and grace period.
// The next run starts without a delay. The stopped run does not count as failed. Of an init container, only a run that has not
// completed is replaced. It changes nothing for an ephemeral container, and for a run that is being replaced already.
type ContainerRestartRequested struct {
	Container string
	By        string // who requested it, as shown in the event
	At        Instant
}

func (e ContainerRestartRequested) apply(f *Facts) { f.renew(e.Container, ReasonRestartRequested) }

// replace requests to replace the newest run of a container.
func (f *Facts) replace(name string, why Reason) {
	c := f.Containers[name]
	if c == nil || f.ephemeral(name) {
		return
	}
	if c.Replaced.Attempt < c.Newest.N() {
		c.Replaced = Replacement{Attempt: c.Newest.N(), Reason: why}
	}
	c.resetDelays()
}

// renew requests to replace the newest run of a container, whose restarts count from 0: a person or a change of its definition starts it.
func (f *Facts) renew(name string, why Reason) {
	f.replace(name, why)
	if c := f.Containers[name]; c != nil {
		c.Exits = 0
	}
}

// mustStop returns why the newest run of a container must stop although its pod continues; empty if it need not.
func (c *Container) mustStop() Reason {
	if why := c.Newest.mustStop(); why != "" {
		return why
	}
	if c.Replaced.includes(&c.Newest) {
		return c.Replaced.Reason
	}
	return ""
}

// StartRound opens a round in the current sandbox after all containers of the previous round have terminated, for a restart of
// all containers (KEP-5532). Runs of earlier rounds are reset: decisions ignore them, as if the engine had no record of them.
// See [RecordOnly].
type StartRound struct {
	Round int
	By    Ref // the run whose exit triggered it
}

func (a StartRound) issued(f *Facts, at Instant) {
	f.Round, f.Restarted, f.RestartedAt = a.Round, a.Round, at
}

func (StartRound) failed(*Facts, Failure, Instant) {}

// restartAll restarts all containers if an exit triggers it, and reports whether it does (contract 4.2). It stops all containers
// with the minimum grace period and without hooks, then opens a new round.
func (p *plan) restartAll() bool {
	by := restartAllTrigger(p.pod, p.facts)
	if by == (Ref{}) {
		return false
	}
	if p.stopAll(ReasonRestartingAllContainers) == 0 && p.due(p.earliestRound(by)) {
		p.do(StartRound{Round: p.facts.Round + 1, By: by})
	}
	return true
}

// earliestRound returns when the next restart of all containers may happen. There is no back-off (contract 4.2), only a minimum
// interval, which bounds the rate for a pod whose containers exit at once. A pod that is retried has the back-off of a Job.
func (p *plan) earliestRound(by Ref) Instant {
	a := &p.facts.Container(by.Container).Newest
	due := retryDue(p.pod, p.facts, a)
	if p.facts.Restarted != p.facts.Round {
		return due
	}
	return later(due, p.facts.RestartedAt.Add(sandboxPace))
}
