package oci

import (
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The OOM score adjustments of the kubelet (package qos), from -1000 to 1000. The kernel adds them when it selects a process to
// kill.
const (
	oomScoreGuaranteed = -997
	oomScoreBestEffort = 1000
	// A burstable pod is never as safe as a guaranteed pod and never as unsafe as a best-effort pod.
	oomScoreLeast, oomScoreMost = 1000 + oomScoreGuaranteed, oomScoreBestEffort - 1
)

// minQuota is the minimum CPU quota per period that the kernel accepts, in microseconds.
const minQuota = 1000

// PodCgroup describes files of the pod's cgroup that exist only in some kernels.
type PodCgroup struct {
	// Swap is true if swap can be limited: memory.memsw.limit_in_bytes, or memory.swap.max with cgroup v2.
	Swap bool
	// OOMGroup is true if the kernel can kill all processes of a cgroup: memory.oom.group, only in cgroup v2.
	OOMGroup bool
}

// PodLimits returns the limits of the pod's cgroup by the kubelet's rule: the limits of the pod, or else the sum of its
// containers if all of them have one. The huge pages are those that the pod requests, of other sizes none. pids is the maximum number of
// processes of all pods, 0 for unlimited. A pod can have a lower one.
func (h Host) PodLimits(pod *spec.Pod, pids int64) cgroup.Limits {
	if own := pod.PidsLimit; own != nil && (pids == 0 || *own < pids) {
		pids = *own
	}
	cpu, most, memory := pod.Request(spec.ResourceCPU), pod.Bound(spec.ResourceCPU), pod.Bound(spec.ResourceMemory)
	return cgroup.Limits{
		Shares: sharesOf(cpu.MilliValue()), Quota: quotaOf(most.MilliValue()), Memory: memory.Value(), Pids: pids,
		HugePages: h.hugePages(pod.Request),
	}
}

// hugePages returns limits of the huge pages of all sizes by the amount of each resource; nil: the host has no controller for them.
func (h Host) hugePages(of func(name string) spec.Quantity) (list []cgroup.HugePages) {
	if !h.Controllers.Has(cgroup.HugeTLB) {
		return nil
	}
	for _, size := range h.HugePages {
		amount := of(spec.HugePagesPrefix + strings.TrimSuffix(size, "B") + "i")
		list = append(list, cgroup.HugePages{Size: size, Bytes: max(amount.Value(), 0)})
	}
	return list
}

// sharesOf converts millicores to cpu.shares.
func sharesOf(milli int64) uint64 {
	return uint64(min(max(milli*1024/1000, cgroup.MinShares), cgroup.MaxShares)) // positive
}

// quotaOf converts millicores to a CPU quota per period, 0 for unlimited.
func quotaOf(milli int64) int64 {
	if milli <= 0 {
		return 0
	}
	return max(milli*cgroup.Period/1000, minQuota)
}

// limitOf returns the limit of a container, or else that of its pod. It is zero if there is none.
func limitOf(pod *spec.Pod, c *spec.Container, name string) spec.Quantity {
	if own, set := c.Resources.Limits[name]; own.Sign() > 0 || set && spec.IsHugePages(name) { // 0 is no limit of others
		return own
	}
	return pod.Resources.Limits[name]
}

// inScope are the annotations of a container or process in a scope of systemd. With cgroup v2, crun would create a cgroup "container" in
// the scope for it, so that the limits and events of the scope were those of its parent. runc ignores the annotation.
func inScope(cgroupsPath string) map[string]string {
	if !isScope(cgroupsPath) {
		return nil
	}
	return map[string]string{"run.oci.systemd.subgroup": ""}
}

func isScope(cgroupsPath string) bool { return strings.Contains(cgroupsPath, ":") }

// maxProcesses is the largest limit of processes with cgroup v1, and the most processes that a kernel can have (PID_MAX_LIMIT).
const maxProcesses = 1 << 22

// unlimitedPids is explicit, because systemd sets a default limit for scopes (DefaultTasksMax). With cgroup v1, crun writes -1 to pids.max,
// which is invalid there.
func unlimitedPids(in *Input) *specs.LinuxPids {
	unlimited := int64(-1)
	if !in.Host.UnifiedCgroups {
		if !isScope(in.CgroupsPath) {
			return nil
		}
		unlimited = maxProcesses
	}
	return &specs.LinuxPids{Limit: &unlimited}
}

// limit sets a container's requests and limits in its resources. It omits limits that no controller of the host supports.
// [Host.CheckResources] rejects pods with such limits.
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
		r.Pids = unlimitedPids(in)
	}
	for _, pages := range in.Host.hugePages(func(name string) spec.Quantity { return limitOf(in.Pod, in.Container, name) }) {
		r.HugepageLimits = append(r.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: pages.Size, Limit: uint64(pages.Bytes)})
	}
}

// Resized returns the resources of a running container that follow from its requests and limits.
func Resized(pod *spec.Pod, c *spec.Container, host Host, group PodCgroup) *specs.LinuxResources {
	r := &specs.LinuxResources{}
	limit(r, &Input{Pod: pod, Container: c, Host: host, Cgroup: group})
	r.Pids, r.HugepageLimits = nil, nil
	return r
}

// limitMemory limits memory, disables swap, and makes the kernel kill all processes of a container together on OOM.
func limitMemory(r *specs.LinuxResources, in *Input) {
	quantity := limitOf(in.Pod, in.Container, spec.ResourceMemory)
	if bytes := quantity.Value(); bytes > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &bytes}
		if in.Cgroup.Swap && !in.Host.UnifiedCgroups {
			r.Memory.Swap = &bytes // with cgroup v1 the sum of memory and swap
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

// oomScoreOf returns the OOM score adjustment of a container on a host with this many bytes of memory.
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

// unassigned returns each container's share of the pod's memory request that exceeds the sum of its containers' requests
// (KEP-2837).
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

// isSidecar reports whether a container is a sidecar of the pod. An app container may have the same restart policy.
func isSidecar(pod *spec.Pod, c *spec.Container) bool {
	for i := range pod.InitContainers {
		if pod.InitContainers[i].Name == c.Name {
			return c.IsSidecar()
		}
	}
	return false
}

// CheckResources returns why the host cannot enforce the limits of a pod: a controller is missing. Requests need no controller,
// because they reserve nothing that another pod could use.
func (h Host) CheckResources(pod *spec.Pod) []lifecycle.Refusal {
	var refused []lifecycle.Refusal
	for _, r := range []struct {
		name, lacks, hint string
		held              bool
	}{
		{
			spec.ResourceCPU, "CPU bandwidth control (the cgroup controller cpu)",
			"use a kernel with CONFIG_CFS_BANDWIDTH, or delegate the controller cpu to podstead",
			h.Controllers.Has(cgroup.CPU) && h.Controllers.Bandwidth,
		},
		{
			spec.ResourceMemory, "the cgroup controller memory",
			"boot with the kernel parameter cgroup_enable=memory, or delegate the controller memory to podstead",
			h.Controllers.Has(cgroup.Memory),
		},
	} {
		if r.held || h.Rootless && !h.Controllers.Has(r.name) { // see CheckRootless
			continue
		}
		for _, field := range pod.LimitFields(r.name) {
			refused = append(refused, lifecycle.Refusal{
				Reason: lifecycle.ReasonUnexpectedAdmissionError, Field: field, Message: "this host has no " + r.lacks, Hint: r.hint,
			})
		}
	}
	return refused
}
