package spec

import (
	"fmt"
	"iter"
	"maps"
)

// The resources that pod files know, by their names in Kubernetes. A pod as a whole can have the first two.
const (
	ResourceCPU              = "cpu"
	ResourceMemory           = "memory"
	ResourceEphemeralStorage = "ephemeral-storage"
)

// resourceNames are the resources that can be requested and limited, podResourceNames those of a pod as a whole (KEP-2837).
var (
	resourceNames    = []string{ResourceCPU, ResourceMemory, ResourceEphemeralStorage}
	podResourceNames = []string{ResourceCPU, ResourceMemory}
)

// QOSClass is how well a pod is protected from the others of its machine, as status.qosClass of Kubernetes.
type QOSClass string

// The classes, the best protected first.
const (
	QOSGuaranteed QOSClass = "Guaranteed" // cpu and memory have limits everywhere, and the requests are the same
	QOSBurstable  QOSClass = "Burstable"
	QOSBestEffort QOSClass = "BestEffort" // neither requests nor limits
)

// QOS is the class of the pod. What the pod has as a whole decides it alone, where it has anything.
func (p *Pod) QOS() QOSClass {
	lists := []Resources{p.Resources}
	if !p.hasOwnResources() {
		lists = nil
		for c := range p.ownContainers() {
			lists = append(lists, c.Resources)
		}
	}
	if nothingIn(lists) {
		return QOSBestEffort
	}
	for _, r := range lists {
		for _, name := range podResourceNames {
			limit, request := r.Limits[name], r.Requests[name]
			if limit.Sign() <= 0 || limit.Cmp(request) != 0 {
				return QOSBurstable
			}
		}
	}
	return QOSGuaranteed
}

// nothingIn reports whether no list has an amount of what classes are made of.
func nothingIn(lists []Resources) bool {
	for _, r := range lists {
		for _, name := range podResourceNames {
			limit, request := r.Limits[name], r.Requests[name]
			if limit.Sign() > 0 || request.Sign() > 0 {
				return false
			}
		}
	}
	return true
}

// hasOwnResources reports whether the pod as a whole requests or limits anything.
func (p *Pod) hasOwnResources() bool { return len(p.Resources.Requests)+len(p.Resources.Limits) > 0 }

// ownContainers yields the init containers, then the containers: those that can have resources.
func (p *Pod) ownContainers() iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
		for _, list := range [][]Container{p.InitContainers, p.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// Request is how much of a resource the pod as a whole asks for: its own request, else what its containers ask for
// together. It is zero where nobody asks.
func (p *Pod) Request(name string) Quantity {
	if own, set := p.Resources.Requests[name]; set {
		return own
	}
	return p.together(func(c *Container) Quantity { return c.Resources.Requests[name] })
}

// Limit is how much of a resource the pod as a whole may use: its own limit, else what the limits of its containers add up
// to, of those that have one. It is zero where there is none.
func (p *Pod) Limit(name string) Quantity {
	if own, set := p.Resources.Limits[name]; set {
		return own
	}
	return p.together(func(c *Container) Quantity { return c.Resources.Limits[name] })
}

// LimitFields are the paths of the pod file that limit a resource, such as containers[0].resources.limits.cpu.
func (p *Pod) LimitFields(name string) []string {
	var fields []string
	add := func(where string, r Resources) {
		if limit, set := r.Limits[name]; set && limit.Sign() > 0 {
			fields = append(fields, where+"resources.limits."+name)
		}
	}
	add("", p.Resources)
	for i := range p.InitContainers {
		add(fmt.Sprintf("initContainers[%d].", i), p.InitContainers[i].Resources)
	}
	for i := range p.Containers {
		add(fmt.Sprintf("containers[%d].", i), p.Containers[i].Resources)
	}
	return fields
}

// Bound is the limit that holds for all containers together: the pod's own, or that of its containers if every one of them
// has one. It is zero where the pod as a whole is not bounded (the kubelet's rule for the cgroup of a pod).
func (p *Pod) Bound(name string) Quantity {
	if _, own := p.Resources.Limits[name]; !own {
		for c := range p.ownContainers() {
			if limit := c.Resources.Limits[name]; limit.Sign() <= 0 {
				return Quantity{}
			}
		}
	}
	return p.Limit(name)
}

// together adds up what containers have at the same time: the containers with all sidecars, or an init container with the
// sidecars before it, whatever is more (KEP-753).
func (p *Pod) together(of func(*Container) Quantity) Quantity {
	var sidecars, atStart Quantity
	for i := range p.InitContainers {
		c := &p.InitContainers[i]
		amount := sidecars.DeepCopy() // an amount may share memory with the pod's
		amount.Add(of(c))
		if amount.Cmp(atStart) > 0 {
			atStart = amount.DeepCopy()
		}
		if c.IsSidecar() {
			sidecars = amount.DeepCopy()
		}
	}
	running := sidecars.DeepCopy()
	for i := range p.Containers {
		running.Add(of(&p.Containers[i]))
	}
	if atStart.Cmp(running) > 0 {
		return atStart
	}
	return running
}

// defaultPodRequests fills in the requests of a pod that has resources as a whole: what its containers ask for together,
// else its limit. Those of the containers are filled in before.
func (p *Pod) defaultPodRequests() {
	if !p.hasOwnResources() {
		return
	}
	requests := ResourceList{}
	maps.Copy(requests, p.Resources.Requests)
	for _, name := range podResourceNames {
		if request := p.Request(name); request.Sign() > 0 {
			requests[name] = request
		} else if limit, limited := p.Resources.Limits[name]; limited && !p.requests(name) {
			requests[name] = limit
		}
	}
	if len(requests) > 0 {
		p.Resources.Requests = requests
	}
}

// requests reports whether the pod or a container says how much of a resource it asks for, be it nothing.
func (p *Pod) requests(name string) bool {
	_, set := p.Resources.Requests[name]
	for c := range p.ownContainers() {
		_, asks := c.Resources.Requests[name]
		set = set || asks
	}
	return set
}
