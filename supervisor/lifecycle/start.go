package lifecycle

import (
	"cmp"
	"slices"

	"github.com/podstead/podstead/spec"
)

// sandbox ensures that there is a sandbox to start containers in, and reports whether it is ready. Before a lost sandbox is
// removed, the containers that still run in it are stopped.
func (p *plan) sandbox() bool {
	s := &p.facts.Sandbox
	switch {
	case s.ready():
		return true
	case s.inFlight():
		return false
	case p.stopAll(ReasonSandboxChanged) > 0:
	case p.held:
	case s.Unavailable && s.Lost.IsZero() && s.Removal.Requested.IsZero(): // after a reboot the pod waits first
		if p.due(s.Failed.Add(unavailableDelay)) {
			p.do(StartSandbox{Sandbox: s.N, Round: p.facts.Round})
		}
	case s.mayExist():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	case !s.Failed.IsZero() && !p.due(s.Failed.Add(sandboxDelay(s))):
	case p.facts.Collection.Removal.pending(): // what the new sandbox creates must not be removed
	case !p.waited():
	case s.N > 0 && !p.due(s.Requested.Add(sandboxPace)):
	default:
		p.do(StartSandbox{Sandbox: s.N + 1, Round: p.facts.Round + 1})
	}
	return false
}

// initContainers starts the init containers, one after another, and reports whether all have passed in this round: init
// containers completed, sidecars started. It keeps the sidecars that have passed running.
func (p *plan) initContainers() bool {
	turn := NextInitContainer(p.pod, *p.facts)
	for i := range p.pod.InitContainers {
		c := &p.pod.InitContainers[i]
		h := p.facts.Container(c.Name)
		if c.IsSidecar() || c.Name == turn {
			p.ensureRunning(c, h)
		}
		if c.Name == turn {
			return false
		}
	}
	return true
}

// ensureRunning checks a running container, or takes the next step towards its next run.
func (p *plan) ensureRunning(c *spec.Container, h *Container) {
	p.watchDevices(c, h)
	if h.Newest.live() {
		p.checkRunning(c, h)
	} else {
		p.startNext(c, h, true)
	}
}

// appContainers starts the app containers. The first start of each in a round waits for the outcome of the previous ones,
// postStart hooks included, so that they start in the order of the pod file. Restarts do not wait.
func (p *plan) appContainers() {
	blocked := false
	for i := range p.pod.Containers {
		c := &p.pod.Containers[i]
		h := p.facts.Container(c.Name)
		a := &h.Newest
		first := p.facts.firstInRound(a)
		switch {
		case a.live():
			p.watchDevices(c, h)
			p.checkRunning(c, h)
		case p.facts.countsAsTerminated(a) && !p.facts.shouldRestart(p.pod, c, a):
		default:
			p.watchDevices(c, h)
			p.startNext(c, h, !first || !blocked)
		}
		blocked = blocked || p.facts.startInProgress(c) || (first && p.planned(c.Name))
	}
}

// firstInRound reports whether an app container is not known to have run in this round yet.
func (f *Facts) firstInRound(a *Attempt) bool {
	return a.Round != f.Round || (!a.ran() && a.CreateFailed.IsZero())
}

// startInProgress reports whether the first start of an app container in this round is in progress, including its image pull and
// its postStart hook.
func (f *Facts) startInProgress(c *spec.Container) bool {
	h := f.Container(c.Name)
	a := &h.Newest
	return a.postStartPending(c) && h.Previous.Round != a.Round || f.firstInRound(a) && (a.live() || h.Pull.inFlight())
}

// StartBlockedBy returns the app container whose start the given one waits for; empty if it waits for none.
func StartBlockedBy(pod *spec.Pod, f Facts, container string) string {
	own := slices.IndexFunc(pod.Containers, func(c spec.Container) bool { return c.Name == container })
	for i := range max(own, 0) {
		if f.startInProgress(&pod.Containers[i]) {
			return pod.Containers[i].Name
		}
	}
	return ""
}

// checkRunning retries a start that failed because the engine was unavailable, runs the postStart hook of a run that has just
// started, and stops a run that must stop.
func (p *plan) checkRunning(c *spec.Container, h *Container) {
	a := &h.Newest
	switch why := h.mustStop(); {
	case why != "":
		p.stop(c, a, why, true)
	case a.Started.IsZero():
		if !a.Retry.IsZero() && !p.held && p.due(a.Retry.Add(unavailableDelay)) {
			p.do(StartContainer{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts, ImageID: h.Image.ID})
		}
	case a.postStartPending(c):
		if p.hookDue(&a.PostStart) {
			p.do(RunPostStart{Ref: a.Ref})
		}
	}
}

// startNext takes the next step towards the next run of a container: wait for the back-off, get the image, start. The image may
// be pulled before mayStart is true.
func (p *plan) startNext(c *spec.Container, h *Container, mayStart bool) {
	if p.held {
		return
	}
	at, level := restartDue(p.pod, p.facts, c, h)
	if !p.due(later(at, p.facts.devicePace(h))) {
		return
	}
	next := p.facts.nextAttempt(h)
	if h.Pull.For != next || h.Pull.Done.IsZero() {
		p.pull(c.Name, h, next)
		return
	}
	if !mayStart {
		return
	}
	restarts := h.Newest.Restarts
	if h.Newest.ran() {
		restarts++
	}
	p.do(StartContainer{
		Ref:     Ref{Container: c.Name, Round: p.facts.Round, Attempt: next},
		Sandbox: p.facts.Sandbox.N, Restarts: restarts, Backoff: level, ImageID: h.Image.ID,
	})
}

// pull pulls the image for the given attempt, unless a pull is in progress or backs off.
func (p *plan) pull(name string, h *Container, attempt int) {
	pull := &h.Pull
	switch {
	case pull.inFlight():
		return
	case !pull.Retry.IsZero() && !p.due(pull.Retry.Add(unavailableDelay)):
		return
	case !pull.Failed.IsZero() && !p.due(pull.Failed.Add(pullDelay(pull))):
		p.find(name, h, attempt)
		return
	}
	p.do(PullImage{
		Container: name, For: attempt, Level: pullLevel(pull, p.now), Image: h.Image, Imported: p.facts.imported(),
	})
}

// find checks for an image whose pull backs off: another pod may have pulled it, or it was imported from an archive. Only pulls
// back off (contract 4.4).
func (p *plan) find(name string, h *Container, attempt int) {
	if pull := &h.Pull; pull.For != attempt || p.due(later(pull.Failed, pull.Checked).Add(retryDelay)) {
		p.do(FindImage{Container: name, For: attempt, Image: h.Image})
	}
}

// probes selects the probes to run (contract 5.2 and 5.6): the startup probe until it has a result, then the others. While a
// container or the pod is terminating, only readiness probes run, for sidecars too (deviation 12). A run that is replaced because its
// definition changed keeps its probes.
func (p *plan) probes() {
	for _, list := range [...][]spec.Container{p.pod.InitContainers, p.pod.Containers} {
		for i := range list {
			h := p.facts.Container(list[i].Name)
			if c := p.facts.definition(&list[i], &h.Newest); h.Newest.up(c) {
				p.probesOf(c, &h.Newest)
			}
		}
	}
}

func (p *plan) probesOf(c *spec.Container, a *Attempt) {
	terminating := a.terminating() || !p.facts.Stop.Requested.IsZero()
	switch started := a.started(c); {
	case started && !terminating && a.Probes.Liveness.Verdict != VerdictFailure:
		p.probe(ProbeLiveness, c, c.LivenessProbe, a, VerdictSuccess)
	case !started && !terminating && a.Probes.Startup.Verdict == "":
		p.probe(ProbeStartup, c, c.StartupProbe, a, "")
	}
	if a.started(c) {
		p.probe(ProbeReadiness, c, c.ReadinessProbe, a, cmp.Or(a.Probes.Readiness.Verdict, VerdictFailure))
	}
}

func (p *plan) probe(kind ProbeKind, c *spec.Container, s *spec.Probe, a *Attempt, initial Verdict) {
	if s == nil {
		return
	}
	p.decision.Probes = append(p.decision.Probes, ProbeOrder{
		ProbeRef: ProbeRef{Ref: a.Ref, Kind: kind}, Spec: s, Definition: c, Started: a.Started, Initial: initial,
	})
}

// EphemeralAdded adds an ephemeral container to the pod (v1.EphemeralContainer). It runs once and nothing depends on it. It has
// no probes, no hooks and no restart policy. The caller must have checked that its name is not used by another container of the
// pod. A name that was added before and the 65th container are ignored.
type EphemeralAdded struct {
	Container spec.Container
	At        Instant
}

func (e EphemeralAdded) apply(f *Facts) {
	if _, taken := f.Containers[e.Container.Name]; !taken && !f.ephemeral(e.Container.Name) && len(f.Ephemeral) < maxEphemeral {
		f.Ephemeral = append(slices.Clip(f.Ephemeral), e.Container)
		f.Changes++
	}
}

// ephemeralContainers starts the ephemeral containers that have not run yet. They do not wait for other containers.
func (p *plan) ephemeralContainers() {
	for i := range p.facts.Ephemeral {
		c := &p.facts.Ephemeral[i]
		if h := p.facts.Container(c.Name); h.Newest.live() || !h.Newest.ran() {
			p.ensureRunning(c, h)
		}
	}
}
