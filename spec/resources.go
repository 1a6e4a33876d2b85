package spec

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// The supported resources, by their names in Kubernetes, besides huge pages, whose names begin with [HugePagesPrefix]. Pod-level resources
// are cpu, memory and huge pages only (KEP-2837).
const (
	ResourceCPU              = "cpu"
	ResourceMemory           = "memory"
	ResourceEphemeralStorage = "ephemeral-storage"
)

// resourceNames are the resources of a container, and podResourceNames those of a pod, both without huge pages.
var (
	resourceNames    = []string{ResourceCPU, ResourceMemory, ResourceEphemeralStorage}
	podResourceNames = []string{ResourceCPU, ResourceMemory}
)

// QOSClass is the quality of service class of a pod (status.qosClass).
type QOSClass string

// The QoS classes, from the last to the first to be evicted.
const (
	QOSGuaranteed QOSClass = "Guaranteed" // all containers have limits of cpu and memory, equal to the requests
	QOSBurstable  QOSClass = "Burstable"
	QOSBestEffort QOSClass = "BestEffort" // no requests and no limits
)

// QOS returns the class of the pod. Pod-level resources take precedence over those of the containers.
func (p *Pod) QOS() QOSClass {
	none, guaranteed := true, true
	add := func(r *Resources) {
		for _, name := range podResourceNames {
			limit, request := r.Limits[name], r.Requests[name]
			none = none && limit.Sign() <= 0 && request.Sign() <= 0
			guaranteed = guaranteed && limit.Sign() > 0 && limit.Cmp(request) == 0
		}
	}
	if p.hasOwnResources() {
		add(&p.Resources)
	} else {
		for c := range p.OwnContainers() {
			add(&c.Resources)
		}
	}
	switch {
	case none:
		return QOSBestEffort
	case guaranteed:
		return QOSGuaranteed
	}
	return QOSBurstable
}

// hasOwnResources reports whether the pod has pod-level resources.
func (p *Pod) hasOwnResources() bool { return len(p.Resources.Requests)+len(p.Resources.Limits) > 0 }

// OwnContainers yields the init containers, then the containers. Ephemeral containers cannot have resources.
func (p *Pod) OwnContainers() iter.Seq[*Container] {
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

// Request returns the pod's request of a resource: the pod-level request, else the aggregate of its containers. Zero means
// none.
func (p *Pod) Request(name string) Quantity {
	if own, set := p.Resources.Requests[name]; set {
		return own
	}
	return p.aggregate(func(c *Container) Quantity { return c.Resources.Requests[name] })
}

// EffectiveRequests returns the requests of the pod that are not zero, see [Pod.Request].
func (p *Pod) EffectiveRequests() ResourceList {
	var list ResourceList
	for _, name := range slices.Concat(resourceNames, p.HugePages()) {
		if q := p.Request(name); q.Sign() > 0 {
			if list == nil {
				list = ResourceList{}
			}
			list[name] = q
		}
	}
	return list
}

// OwnResources returns the pod-level resources; nil: there are none.
func (p *Pod) OwnResources() *Resources {
	if !p.hasOwnResources() {
		return nil
	}
	return &p.Resources
}

// Limit returns the pod's limit of a resource: the pod-level limit, else the aggregate of the containers that have a limit.
// Zero means none.
func (p *Pod) Limit(name string) Quantity {
	if own, set := p.Resources.Limits[name]; set {
		return own
	}
	return p.aggregate(func(c *Container) Quantity { return c.Resources.Limits[name] })
}

// LimitFields returns the paths of the fields that limit a resource, such as containers[0].resources.limits.cpu.
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

// Bound returns the limit of the pod's cgroup: the pod-level limit, or the aggregate of its containers if all of them have a
// limit. Zero means no limit (kubelet: ResourceConfigForPod).
func (p *Pod) Bound(name string) Quantity {
	if _, own := p.Resources.Limits[name]; !own {
		for c := range p.OwnContainers() {
			if limit := c.Resources.Limits[name]; limit.Sign() <= 0 {
				return Quantity{}
			}
		}
	}
	return p.Limit(name)
}

// aggregate returns the maximum that the containers have at the same time: all containers and sidecars, or an init container
// and the sidecars before it (KEP-753).
func (p *Pod) aggregate(of func(*Container) Quantity) Quantity {
	var sidecars, atStart Quantity
	for i := range p.InitContainers {
		c := &p.InitContainers[i]
		amount := sidecars.DeepCopy() // a Quantity can share memory with the pod's
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

// defaultPodRequests sets the pod-level requests of a pod with pod-level resources: the aggregate of its containers, else the
// limit. The requests of the containers must have their defaults already.
func (p *Pod) defaultPodRequests() {
	if !p.hasOwnResources() {
		return
	}
	p.defaultPodHugePages()
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

// requests reports whether the pod or a container sets a request of a resource, including 0.
func (p *Pod) requests(name string) bool {
	_, set := p.Resources.Requests[name]
	for c := range p.OwnContainers() {
		_, asks := c.Resources.Requests[name]
		set = set || asks
	}
	return set
}
