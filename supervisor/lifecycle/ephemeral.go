package lifecycle

import (
	"slices"

	"github.com/podstead/podstead/spec"
)

// maxEphemeral is the maximum number of ephemeral containers over the life of a pod. Their records are kept.
const maxEphemeral = 64

// maxEphemeralPulls is how many pulls of the image of an ephemeral container may fail. Then the container is removed from the pod: a person
// waits for it, and nothing else can remove it.
const maxEphemeralPulls = 3

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

// removeEphemeral removes an ephemeral container. Its name can be used again. Other containers stay.
func (f *Facts) removeEphemeral(name string) {
	if f.ephemeral(name) {
		f.Ephemeral = slices.DeleteFunc(slices.Clone(f.Ephemeral), func(c spec.Container) bool { return c.Name == name })
		delete(f.Containers, name)
		f.Changes++
	}
}

// ephemeral reports whether an ephemeral container has the given name.
func (f *Facts) ephemeral(name string) bool {
	return slices.ContainsFunc(f.Ephemeral, func(c spec.Container) bool { return c.Name == name })
}

// ephemeralContainers starts the ephemeral containers that have not run yet. They do not wait for other containers.
func (p *plan) ephemeralContainers() {
	for i := range p.facts.Ephemeral {
		c := &p.facts.Ephemeral[i]
		if h := p.facts.Containers[c.Name]; h.Newest.live() || !h.Newest.ran() {
			p.ensureRunning(c, &h)
		}
	}
}

// stopEphemeralContainers stops the ephemeral containers and returns how many are running. They are stopped at once, and no
// other container waits for them.
func (p *plan) stopEphemeralContainers(why Reason) int {
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
