package emit

import (
	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
)

// Causes tracks what the next event of a pod follows from: the newest event of its container or, if the container has none, the newest
// event of the pod.
type Causes map[string]cause // by container; "" is the pod

type cause struct {
	seq  uint64
	kind api.EventKind
}

// startsOver has the kinds that everything after them follows from, in all containers.
var startsOver = map[api.EventKind]bool{
	api.EventHostRebooted: true, api.EventSandboxChanged: true, api.EventPodRestarting: true, api.EventPodEscalated: true,
	api.EventPodStartRequested: true, api.EventPodRestartRequested: true,
}

// noCause has the kinds that nothing follows from. The next event has the same cause as they have.
var noCause = map[api.EventKind]bool{
	api.EventContainerCreated:    true, // emitted whether or not the container then starts
	api.EventImageError:          true, // the kubelet's second event for an image that it cannot pull
	api.EventImageShadowed:       true, // the container starts with the image anyway
	api.EventConditionChanged:    true, // the pod does not react to it
	api.EventStateNotDurable:     true, // nor to the disk
	api.EventStateDurable:        true,
	api.EventMonitorUnresponsive: true, // nor to the shim
	api.EventMonitorResponding:   true,
	api.EventVolumesNotUpdated:   true, // nor to its volumes
	api.EventVolumesUpdated:      true,
}

// of returns the cause of the next event of the container; 0: there is none.
func (c Causes) of(container string) uint64 {
	if newest, ok := c[container]; ok {
		return newest.seq
	}
	return c[""].seq
}

// ofContainer is [Causes.of], but 0 if only the pod has events.
func (c Causes) ofContainer(container string) uint64 { return c[container].seq }

// ofPod returns the newest event of the pod itself.
func (c Causes) ofPod() uint64 { return c[""].seq }

// latest returns the newest event of the pod and all of its containers.
func (c Causes) latest() uint64 {
	seq := uint64(0)
	for _, newest := range c {
		seq = max(seq, newest.seq)
	}
	return seq
}

// repeats reports whether the newest event of the container is of this kind.
func (c Causes) repeats(container string, kind api.EventKind) bool { return c[container].kind == kind }

// Record makes an event the cause of what follows, unless nothing follows from it.
func (c Causes) Record(e *event.Event) {
	if noCause[e.Kind] || e.KeepsDevice() {
		return
	}
	if startsOver[e.Kind] {
		clear(c)
	}
	c[e.Container] = cause{e.Seq, e.Kind}
}
