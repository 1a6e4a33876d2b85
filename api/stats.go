package api

import (
	"time"
)

// StatsSummary is what pods use: the part of the kubelet's Summary API (/stats/summary, v1alpha1) that is about pods, with the same names
// of fields. A figure that is not known is absent. Additional fields are marked.
type StatsSummary struct {
	Pods []PodStats `json:"pods"`
}

// PodStats is what a pod uses. The figures of the pod include the process of its sandbox.
type PodStats struct {
	PodRef     PodReference     `json:"podRef"`
	StartTime  time.Time        `json:"startTime"`
	Containers []ContainerStats `json:"containers"`
	CPU        *CPUStats        `json:"cpu,omitempty"`
	Memory     *MemoryStats     `json:"memory,omitempty"`
	Network    *NetworkStats    `json:"network,omitempty"` // absent: the pod uses the network of the host
	// EphemeralStorage is the sum of the writable layers and the logs of all containers.
	EphemeralStorage *FsStats      `json:"ephemeral-storage,omitempty"`
	ProcessStats     *ProcessStats `json:"process_stats,omitempty"`
}

// PodReference identifies a pod.
type PodReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"` // always "default"
	UID       string `json:"uid"`
}

// ContainerStats is what a container uses. A container that is not running has only logs.
type ContainerStats struct {
	Name      string       `json:"name"`
	StartTime time.Time    `json:"startTime,omitzero"`
	CPU       *CPUStats    `json:"cpu,omitempty"`
	Memory    *MemoryStats `json:"memory,omitempty"`
	// Rootfs is the files that the container has changed in its image.
	Rootfs *FsStats `json:"rootfs,omitempty"`
	// Logs is the logs of all runs of the container, with rotated files.
	Logs *FsStats `json:"logs,omitempty"`
	// ProcessStats is additional: the kubelet has it for pods only.
	ProcessStats *ProcessStats `json:"process_stats,omitempty"`
}

// CPUStats is CPU time.
type CPUStats struct {
	Time time.Time `json:"time"`
	// UsageNanoCores is the usage in billionths of a core since the sample before, which was taken at most two minutes earlier.
	UsageNanoCores *uint64 `json:"usageNanoCores,omitempty"`
	// UsageCoreNanoSeconds is the CPU time since the start.
	UsageCoreNanoSeconds uint64 `json:"usageCoreNanoSeconds"`
	// Throttling is additional.
	Throttling *ThrottlingStats `json:"throttling,omitempty"`
}

// ThrottlingStats is how often the limit of CPU time stopped processes since the start.
type ThrottlingStats struct {
	Periods              uint64 `json:"periods"`
	ThrottledPeriods     uint64 `json:"throttledPeriods"`
	ThrottledNanoSeconds uint64 `json:"throttledNanoSeconds"`
}

// MemoryStats is in bytes.
type MemoryStats struct {
	Time            time.Time `json:"time"`
	AvailableBytes  *uint64   `json:"availableBytes,omitempty"` // LimitBytes without WorkingSetBytes
	UsageBytes      uint64    `json:"usageBytes"`
	WorkingSetBytes uint64    `json:"workingSetBytes"` // UsageBytes without inactive files
	RSSBytes        uint64    `json:"rssBytes"`
	PageFaults      uint64    `json:"pageFaults"`
	MajorPageFaults uint64    `json:"majorPageFaults"`
	// LimitBytes and OOMKills are additional. OOMKills is the number of processes that the kernel has OOM-killed since the start.
	LimitBytes *uint64 `json:"limitBytes,omitempty"`
	OOMKills   *uint64 `json:"oomKills,omitempty"`
}

// FsStats is the usage of a file system, measured at Time.
type FsStats struct {
	Time      time.Time `json:"time"`
	UsedBytes uint64    `json:"usedBytes"`
}

// NetworkStats is the traffic of a pod. The embedded interface is eth0, or the first one if the pod has none of this name.
type NetworkStats struct {
	Time time.Time `json:"time"`
	InterfaceStats
	Interfaces []InterfaceStats `json:"interfaces"`
}

// InterfaceStats is the traffic of a network interface since the start of the sandbox.
type InterfaceStats struct {
	Name     string `json:"name"`
	RxBytes  uint64 `json:"rxBytes"`
	RxErrors uint64 `json:"rxErrors"`
	TxBytes  uint64 `json:"txBytes"`
	TxErrors uint64 `json:"txErrors"`
}

// ProcessStats is the number of processes and threads.
type ProcessStats struct {
	ProcessCount uint64 `json:"process_count"`
}
