package lifecycle

import (
	"slices"

	"github.com/podstead/podstead/spec"
)

// maxEphemeral bounds the ephemeral containers of a pod over its life; their records stay.
const maxEphemeral = 64

// EphemeralAdded adds an ephemeral container to the pod (v1.EphemeralContainer): it runs once, beside whatever the pod is
// at, and nothing else depends on it. It has no probes, hooks or policy of its own, and its name is none of the pod's: who
// adds it knows the pod and has checked that. One that was added before, and the 65th, are not taken in.
type EphemeralAdded struct {
	Container spec.Container
	At        Instant
}

func (e EphemeralAdded) apply(f *Facts) {
	if _, taken := f.Containers[e.Container.Name]; !taken && !f.ephemeral(e.Container.Name) && len(f.Ephemeral) < maxEphemeral {
		f.Ephemeral = append(slices.Clip(f.Ephemeral), e.Container)
	}
}

// ephemeral reports whether a name is that of an ephemeral container.
func (f *Facts) ephemeral(name string) bool {
	return slices.ContainsFunc(f.Ephemeral, func(c spec.Container) bool { return c.Name == name })
}

// ephemerals starts the ephemeral containers that have not run yet, whatever else is waited for in the sandbox.
func (p *plan) ephemerals() {
	for i := range p.facts.Ephemeral {
		c := &p.facts.Ephemeral[i]
		if h := p.facts.Containers[c.Name]; h.Newest.live() || !h.Newest.ran() {
			p.keep(c, &h)
		}
	}
}

// stopEphemerals stops what runs of them, and returns how many there are. They have no turn, and nobody waits for them.
func (p *plan) stopEphemerals(why Reason) int {
	busy := 0
	for i := range p.facts.Ephemeral {
		c := &p.facts.Ephemeral[i]
		if h := p.facts.Containers[c.Name]; h.Newest.live() {
			busy++
			p.stop(c, &h.Newest, why, true)
		}
	}
	return busy
}
