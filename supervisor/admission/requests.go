package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// requestReasons are the resources whose requests are checked, in the kubelet's order.
var requestReasons = []requestReason{
	{spec.ResourceCPU, lifecycle.ReasonOutOfCPU},
	{spec.ResourceMemory, lifecycle.ReasonOutOfMemory},
	{spec.ResourceEphemeralStorage, lifecycle.ReasonOutOfEphemeralStorage},
}

type requestReason struct {
	name   string
	reason lifecycle.Reason
}

// CheckRequests returns a refusal for each resource of which a pod requests more than is free: what is allocatable, minus the requests
// of the other pods (kubelet: noderesources.Fits). A pod without a request is admitted even if nothing is free. A resource that is not in
// allocatable is not checked.
func (p Policy) CheckRequests(pod *spec.Pod, others []*spec.Pod, allocatable spec.ResourceList) []lifecycle.Refusal {
	if p.IgnoreRequests {
		return nil
	}
	var list []lifecycle.Refusal
	requests := slices.Clone(requestReasons)
	for _, name := range pod.HugePages() {
		size := strings.TrimPrefix(name, spec.HugePagesPrefix)
		requests = append(requests, requestReason{name, lifecycle.ReasonOutOfHugePages + lifecycle.Reason(size)})
	}
	for _, r := range requests {
		capacity, known := allocatable[r.name]
		if !known && !spec.IsHugePages(r.name) { // a host has no huge pages of other sizes
			continue
		}
		d := demand{name: r.name, requested: units(pod, r.name), capacity: spec.Units(r.name, capacity)}
		for _, other := range others {
			d.used = min(d.used, maxUsed) + units(other, r.name)
		}
		if d.requested <= max(d.free(), 0) {
			continue
		}
		list = append(list, lifecycle.Refusal{
			Reason: r.reason, Field: pod.RequestField(r.name), Message: d.message(), Hint: d.hint(others),
		})
	}
	return list
}

// maxUsed bounds sums, so that they do not overflow.
const maxUsed = 1 << 61

// units returns the request of a pod in units of the scheduler: thousandths of a CPU, or bytes.
func units(pod *spec.Pod, name string) int64 { return spec.Units(name, pod.Request(name)) }

// demand is the request of one resource, compared with what the host has.
type demand struct {
	name                      string
	requested, used, capacity int64
}

func (d demand) free() int64 { return d.capacity - d.used }

// message starts with the kubelet's message (InsufficientResourceError).
func (d demand) message() string {
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d; free: %s",
		d.name, d.requested, d.used, d.capacity, spec.Amount(d.name, max(d.free(), 0)))
}

// hint names the pods that request the most, unless the request exceeds what the host has.
func (d demand) hint(others []*spec.Pod) string {
	const alternative = `, or set requests = "ignore" in [policy] of podstead.toml`
	holders := slices.DeleteFunc(slices.Clone(others), func(p *spec.Pod) bool { return units(p, d.name) == 0 })
	switch {
	case spec.IsHugePages(d.name) && d.requested > d.capacity:
		return "reserve huge pages, such as with the kernel parameters hugepagesz and hugepages or, for pages of 2Mi, sysctl " +
			"vm.nr_hugepages=NUMBER" + alternative
	case d.capacity == 0:
		return "do not request " + d.name + alternative
	case d.requested > d.capacity || len(holders) == 0:
		return fmt.Sprintf("request at most %s of %s%s", spec.Amount(d.name, max(d.free(), 0)), d.name, alternative)
	}
	slices.SortStableFunc(holders, func(a, b *spec.Pod) int { return cmp.Compare(units(b, d.name), units(a, d.name)) })
	var named []string
	for _, p := range holders[:min(len(holders), 3)] {
		named = append(named, fmt.Sprintf("%s (%s)", p.Name, spec.Amount(d.name, units(p, d.name))))
	}
	if more := len(holders) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("request less %s, delete one of the pods %s%s", d.name, strings.Join(named, ", "), alternative)
}
