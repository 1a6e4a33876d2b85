package lifecycle

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
)

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

// Outgoing is a container as a run of it was started, before a change of its definition. The run is stopped as it says.
type Outgoing struct {
	Container spec.Container `json:"container"`
	Attempt   int            `json:"attempt"` // the newest run of this definition
	Grace     time.Duration  `json:"grace"`
	Removed   bool           `json:"removed,omitempty"` // the pod does not have the container any more
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
	for c := range containersOf(e.From) {
		switch {
		case e.To.Container(c.Name) == nil:
			f.goes(e.From, c, true)
		case slices.Contains(e.Restarted, c.Name):
			f.goes(e.From, c, false)
			f.replace(c.Name, ReasonDefinitionChanged)
		default:
			f.skipPostStart(c, e.To.Container(c.Name), e.At)
			f.probeAgain(c, e.To.Container(c.Name), e.At)
		}
	}
	for c := range containersOf(e.To) {
		if o := f.outgoing(c.Name); o != nil && o.Removed { // added again before it was forgotten
			o.Removed = false
			f.replace(c.Name, ReasonDefinitionChanged)
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
		f.Containers = map[string]Container{}
	}
	c := f.Containers[container]
	c.Pull = Pull{For: f.nextAttempt(&c), Done: at}
	c.Image = image
	f.Containers[container] = c
}

// staged reports whether the image was present before a run needed it.
func (p *Pull) staged() bool { return p.Requested.IsZero() && p.Checked.IsZero() && !p.Done.IsZero() }

// goes keeps the definition of a container whose run is going to be stopped. A definition that is kept already is that of an older
// run, which has not stopped yet.
func (f *Facts) goes(pod *spec.Pod, c *spec.Container, removed bool) {
	h, known := f.Containers[c.Name]
	if !known || f.ephemeral(c.Name) {
		return
	}
	if o := f.outgoing(c.Name); o != nil && h.Newest.N() <= o.Attempt {
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
	if hasPostStart(from) == hasPostStart(to) || !h.Newest.live() || !h.Newest.PostStart.Done.IsZero() {
		return
	}
	h.Newest.PostStart = Hook{Requested: at, Done: at}
	f.Containers[from.Name] = h
}

// probeAgain drops the result of a readiness probe that checks something else from now on: it says nothing about the new definition. A
// change of intervals and thresholds keeps it.
func (f *Facts) probeAgain(from, to *spec.Container, at Instant) {
	h := f.Containers[from.Name]
	if to.ReadinessProbe == nil || checksSame(from, to) || !h.Newest.live() {
		return
	}
	h.Newest.Probes.Readiness = ProbeStatus{At: at}
	f.Containers[from.Name] = h
}

// checksSame reports whether the readiness probes of two definitions check the same.
func checksSame(from, to *spec.Container) bool {
	a, b := from.ReadinessProbe, to.ReadinessProbe
	if a == nil {
		return false
	}
	same := func(a, b any) bool { return reflect.DeepEqual(a, b) }
	return same(a.Exec, b.Exec) && same(a.HTTPGet, b.HTTPGet) && same(a.TCPSocket, b.TCPSocket) && same(a.GRPC, b.GRPC) &&
		(!namesPort(b) || slices.Equal(from.Ports, to.Ports))
}

// namesPort reports whether a probe refers to a port of the container by its name.
func namesPort(p *spec.Probe) bool {
	return p.HTTPGet != nil && p.HTTPGet.Port.Name != "" || p.TCPSocket != nil && p.TCPSocket.Port.Name != ""
}

// outgoing returns the earlier definition of a container; nil if there is none.
func (f *Facts) outgoing(name string) *Outgoing {
	for i := range f.Outgoing {
		if f.Outgoing[i].Container.Name == name {
			return &f.Outgoing[i]
		}
	}
	return nil
}

func (f *Facts) dropOutgoing(name string) {
	f.Outgoing = slices.DeleteFunc(slices.Clone(f.Outgoing), func(o Outgoing) bool { return o.Container.Name == name })
	if len(f.Outgoing) == 0 {
		f.Outgoing = nil
	}
}

// removed reports whether a change of the definition removed a container that is not forgotten yet.
func (f *Facts) removed(name string) bool {
	o := f.outgoing(name)
	return o != nil && o.Removed
}

// DefinitionOf returns the container that a run was started from, or will be: that of an earlier definition if the run has not
// stopped since the definition changed. It returns nil if the pod has no such container.
func DefinitionOf(pod *spec.Pod, f Facts, container string, attempt int) *spec.Container {
	if c := f.earlier(container, attempt); c != nil {
		return c
	}
	return pod.Container(container)
}

// definition is DefinitionOf for a run of a container that the pod has.
func (f *Facts) definition(c *spec.Container, a *Attempt) *spec.Container {
	return cmp.Or(f.earlier(c.Name, a.N()), c)
}

// earlier returns the earlier definition that a run was started from; nil if it was not.
func (f *Facts) earlier(container string, attempt int) *spec.Container {
	if o := f.outgoing(container); o != nil && attempt <= o.Attempt {
		return &o.Container
	}
	return nil
}

// nextAttempt returns the number of the next run of a container. A container that is added again does not reuse the numbers of the
// one that was removed.
func (f *Facts) nextAttempt(h *Container) int {
	if h.Newest.N() == 0 {
		return f.Forgotten + 1
	}
	return h.Newest.N() + 1
}

// ForgetContainer drops the facts about a removed container of which nothing is left. See [RecordOnly].
type ForgetContainer struct{ Container string }

func (a ForgetContainer) issued(f *Facts, _ Instant) {
	h := f.Containers[a.Container]
	f.Forgotten = max(f.Forgotten, h.Newest.N(), h.Pull.For)
	delete(f.Containers, a.Container)
	f.dropOutgoing(a.Container)
}

func (ForgetContainer) failed(*Facts, Failure, Instant) {}

// retire stops the containers that a change of the definition removed, removes their records, and forgets them. They are stopped
// at once.
func (p *plan) retire() {
	for i := range p.facts.Outgoing {
		o := &p.facts.Outgoing[i]
		if !o.Removed {
			continue
		}
		h := p.facts.Containers[o.Container.Name]
		p.cancelHooks(&h.Newest)
		if p.cancelPull(o.Container.Name) {
			continue
		}
		if h.Newest.live() {
			p.stop(&o.Container, &h.Newest, ReasonContainerRemoved, true)
		} else if !p.facts.Stop.Delete { // a deleted pod is removed as a whole
			p.forget(o.Container.Name, &h)
		}
	}
}

// forget removes the record of the newest run that has one, which removes all older ones, and then forgets the container.
func (p *plan) forget(name string, h *Container) {
	last := &h.Newest
	if !last.ran() {
		last = &h.Previous
	}
	switch {
	case !last.ran() || !last.Removal.Done.IsZero():
		p.do(ForgetContainer{Container: name})
	case p.removable(&last.Removal):
		p.do(RemoveContainer{Ref: last.Ref})
	}
}

// retiring returns the number of removed containers that have not stopped.
func (p *plan) retiring() int {
	busy := 0
	for i := range p.facts.Outgoing {
		o := &p.facts.Outgoing[i]
		if h := p.facts.Containers[o.Container.Name]; o.Removed && (h.Newest.live() || h.Pull.inFlight()) {
			busy++
		}
	}
	return busy
}

// containersOf iterates over the init containers and the app containers of a pod.
func containersOf(pod *spec.Pod) func(yield func(*spec.Container) bool) {
	return func(yield func(*spec.Container) bool) {
		for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
