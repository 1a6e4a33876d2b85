package lifecycle

import (
	"cmp"

	"github.com/podstead/podstead/spec"
)

// probes orders the probes of what runs (contract 5.2 and 5.6): the startup probe until it has a verdict, the others from
// then on. What is being brought to its end is asked for its readiness only, sidecars included (DEVIATIONS 12).
func (p *plan) probes() {
	for _, list := range [...][]spec.Container{p.pod.InitContainers, p.pod.Containers} {
		for i := range list {
			c := &list[i]
			h := p.facts.Containers[c.Name]
			if h.Newest.up(c) {
				p.probesOf(c, &h.Newest)
			}
		}
	}
}

func (p *plan) probesOf(c *spec.Container, a *Attempt) {
	ending := a.ending() || !p.facts.Stop.Requested.IsZero()
	switch started := a.started(c); {
	case started && !ending && a.Probes.Liveness.Verdict != VerdictFailure:
		p.probe(ProbeLiveness, c.LivenessProbe, a, VerdictSuccess)
	case !started && !ending && a.Probes.Startup.Verdict == "":
		p.probe(ProbeStartup, c.StartupProbe, a, "")
	}
	if a.started(c) {
		p.probe(ProbeReadiness, c.ReadinessProbe, a, cmp.Or(a.Probes.Readiness.Verdict, VerdictFailure))
	}
}

func (p *plan) probe(kind ProbeKind, s *spec.Probe, a *Attempt, holds Verdict) {
	if s == nil {
		return
	}
	p.decision.Probes = append(p.decision.Probes, ProbeOrder{
		ProbeRef: ProbeRef{Ref: a.Ref, Kind: kind}, Spec: s, Started: a.Started, Initial: holds,
	})
}
