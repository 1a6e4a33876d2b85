package oci

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The kubelet's OOM scores (its package qos): what the kernel adds to a process when it looks for one to kill, from -1000 to
// 1000.
const (
	oomScoreGuaranteed = -997
	oomScoreBestEffort = 1000
	// A burstable pod is never as safe as a guaranteed one, nor as unsafe as a best-effort one.
	oomScoreLeast, oomScoreMost = 1000 + oomScoreGuaranteed, oomScoreBestEffort - 1
)

// minQuota is the least CPU time in a period that the kernel takes, in microseconds.
const minQuota = 1000

// PodCgroup is what the cgroup of the container's pod shows: files that kernels have or lack.
type PodCgroup struct {
	// Swap says that swap can be bounded: memory.memsw.limit_in_bytes, or memory.swap.max with cgroup v2.
	Swap bool
	// OOMGroup says that the kernel can kill a cgroup as a whole: memory.oom.group, which only cgroup v2 has.
	OOMGroup bool
}

// PodLimits are those of the cgroup in which all containers of a pod lie, by the kubelet's rule: what the pod has as a whole,
// else the sum of its containers if every one has a limit. pids is how many processes it may have; 0: any.
func PodLimits(pod *spec.Pod, pids int64) cgroup.Limits {
	cpu, most, memory := pod.Request(spec.ResourceCPU), pod.Bound(spec.ResourceCPU), pod.Bound(spec.ResourceMemory)
	return cgroup.Limits{
		Shares: sharesOf(cpu.MilliValue()), Quota: quotaOf(most.MilliValue()), Memory: memory.Value(), Pids: pids,
	}
}

// sharesOf are the cpu.shares of so many thousandths of a processor.
func sharesOf(milli int64) uint64 {
	return uint64(min(max(milli*1024/1000, cgroup.MinShares), cgroup.MaxShares)) //nolint:gosec // it is positive
}

// quotaOf is the CPU time in a period of so many thousandths of a processor; 0: any.
func quotaOf(milli int64) int64 {
	if milli <= 0 {
		return 0
	}
	return max(milli*cgroup.Period/1000, minQuota)
}

// limitOf is the limit of a container: its own, else that of its pod as a whole. It is zero where there is none.
func limitOf(pod *spec.Pod, c *spec.Container, name string) spec.Quantity {
	if own := c.Resources.Limits[name]; own.Sign() > 0 {
		return own
	}
	return pod.Resources.Limits[name]
}

// limit puts a container's requests and limits into its resources. What no controller of the machine can hold is left out:
// [Machine.CheckResources] has refused such limits.
func limit(r *specs.LinuxResources, in *Input) {
	has := in.Host.Controllers.Has
	request, asked := in.Container.Resources.Requests[spec.ResourceCPU]
	most := limitOf(in.Pod, in.Container, spec.ResourceCPU)
	if !asked {
		request = most
	}
	if has(cgroup.CPU) {
		shares := sharesOf(request.MilliValue())
		r.CPU = &specs.LinuxCPU{Shares: &shares}
		if quota := quotaOf(most.MilliValue()); quota > 0 {
			period := uint64(cgroup.Period)
			r.CPU.Quota, r.CPU.Period = &quota, &period
		}
	}
	if has(cgroup.Memory) {
		limitMemory(r, in)
	}
	if has(cgroup.Pids) {
		unlimited := int64(-1) // which is to be said: systemd gives a scope a limit of its own (DefaultTasksMax)
		r.Pids = &specs.LinuxPids{Limit: &unlimited}
	}
	if has(cgroup.HugeTLB) {
		for _, size := range in.Host.HugePages {
			r.HugepageLimits = append(r.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: size})
		}
	}
}

// limitMemory bounds memory, allows no swap, and has all processes of a container die where the kernel kills one.
func limitMemory(r *specs.LinuxResources, in *Input) {
	quantity := limitOf(in.Pod, in.Container, spec.ResourceMemory)
	if bytes := quantity.Value(); bytes > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &bytes}
		if in.Cgroup.Swap && !in.Host.UnifiedCgroups {
			r.Memory.Swap = &bytes // with cgroup v1, that is both together
		}
	}
	if !in.Host.UnifiedCgroups {
		return
	}
	r.Unified = map[string]string{}
	if in.Cgroup.Swap {
		r.Unified["memory.swap.max"] = "0"
	}
	if in.Cgroup.OOMGroup {
		r.Unified["memory.oom.group"] = "1"
	}
}

// oomScoreOf is the OOM score of a container on a machine with so many bytes of memory.
func oomScoreOf(pod *spec.Pod, c *spec.Container, memory int64) int {
	switch pod.QOS() {
	case spec.QOSGuaranteed:
		return oomScoreGuaranteed
	case spec.QOSBestEffort:
		return oomScoreBestEffort
	case spec.QOSBurstable:
	}
	request := memoryRequest(c)
	if len(pod.Containers) > 0 && isSidecar(pod, c) {
		least := memoryRequest(&pod.Containers[0])
		for i := range pod.Containers {
			least = min(least, memoryRequest(&pod.Containers[i]))
		}
		request = max(request, least)
	}
	score := oomScoreBestEffort
	if memory > 0 {
		score -= int(1000 * (request + unassigned(pod)) / memory)
	}
	return min(max(score, oomScoreLeast), oomScoreMost)
}

// unassigned is each container's share of the memory that the pod requests as a whole beyond what they request (KEP-2837).
func unassigned(pod *spec.Pod) int64 {
	own, containers := pod.Resources.Requests[spec.ResourceMemory], len(pod.InitContainers)+len(pod.Containers)
	if own.Sign() <= 0 || containers == 0 {
		return 0
	}
	parts := *pod
	parts.Resources = spec.Resources{}
	together := parts.Request(spec.ResourceMemory)
	return (own.Value() - together.Value()) / int64(containers)
}

func memoryRequest(c *spec.Container) int64 {
	q := c.Resources.Requests[spec.ResourceMemory]
	return q.Value()
}

// isSidecar reports whether a container is a sidecar of the pod; an app container may have the same restart policy.
func isSidecar(pod *spec.Pod, c *spec.Container) bool {
	for i := range pod.InitContainers {
		if pod.InitContainers[i].Name == c.Name {
			return c.IsSidecar()
		}
	}
	return false
}

// CheckResources returns why the machine cannot hold the limits of a pod: it lacks a controller for them. Requests without one
// are no reason: they promise nothing that another pod could take.
func (h Host) CheckResources(pod *spec.Pod) []lifecycle.Refusal {
	var refused []lifecycle.Refusal
	for _, r := range []struct {
		name, lacks, mend string
		held              bool
	}{
		{
			spec.ResourceCPU, "CPU bandwidth control (the cgroup controller cpu)",
			"use a kernel with CONFIG_CFS_BANDWIDTH, or delegate the controller cpu to podstead", h.Controllers.Has(cgroup.CPU) && h.Controllers.Bandwidth,
		},
		{
			spec.ResourceMemory, "the cgroup controller memory",
			"boot with the kernel parameter cgroup_enable=memory, or delegate the controller memory to podstead", h.Controllers.Has(cgroup.Memory),
		},
	} {
		if r.held {
			continue
		}
		for _, field := range pod.LimitFields(r.name) {
			refused = append(refused, lifecycle.Refusal{
				Reason: lifecycle.ReasonUnexpectedAdmissionError, Field: field, Message: "this machine lacks " + r.lacks, Hint: r.mend,
			})
		}
	}
	return refused
}
