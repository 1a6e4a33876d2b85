package supervisor

// causes tracks what the next event of a pod follows from: the newest event of its container or, if the container has none, the newest
// event of the pod.
type causes map[string]cause // by container; "" is the pod

type cause struct {
	seq  uint64
	kind Kind
}

// startsOver has the kinds that everything after them follows from, in all containers.
var startsOver = map[Kind]bool{HostRebooted: true, SandboxChanged: true, PodRestarting: true}

// noCause has the kinds that nothing follows from. The next event has the same cause as they have.
var noCause = map[Kind]bool{
	ContainerCreated: true, // emitted whether or not the container then starts
	ImageError:       true, // the kubelet's second event for an image that it cannot pull
	ConditionChanged: true, // the pod does not react to it
	StateNotDurable:  true, // nor to the disk
	StateDurable:     true,
}

// of returns the cause of the next event of the container; 0: there is none.
func (c causes) of(container string) uint64 {
	if newest, ok := c[container]; ok {
		return newest.seq
	}
	return c[""].seq
}

// ofContainer is [causes.of], but 0 if only the pod has events.
func (c causes) ofContainer(container string) uint64 { return c[container].seq }

// ofPod returns the newest event of the pod itself.
func (c causes) ofPod() uint64 { return c[""].seq }

// latest returns the newest event of the pod and all of its containers.
func (c causes) latest() uint64 {
	seq := uint64(0)
	for _, newest := range c {
		seq = max(seq, newest.seq)
	}
	return seq
}

// repeats reports whether the newest event of the container is of this kind.
func (c causes) repeats(container string, kind Kind) bool { return c[container].kind == kind }

// record makes an event the cause of what follows, unless nothing follows from its kind.
func (c causes) record(container string, seq uint64, kind Kind) {
	if noCause[kind] {
		return
	}
	if startsOver[kind] {
		clear(c)
	}
	c[container] = cause{seq, kind}
}
