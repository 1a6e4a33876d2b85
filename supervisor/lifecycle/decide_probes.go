package lifecycle

import (
	"cmp"

	"github.com/podstead/podstead/spec"
)

// probes selects the probes to run (contract 5.2 and 5.6): the startup probe until it has a result, then the others. While a
// container or the pod is terminating, only readiness probes run, for sidecars too (deviation 12). A run that is replaced because its
// definition changed keeps its probes.
func (p *plan) probes() {
	for _, list := range [...][]spec.Container{p.pod.InitContainers, p.pod.Containers} {
		for i := range list {
			h := p.facts.Containers[list[i].Name]
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
