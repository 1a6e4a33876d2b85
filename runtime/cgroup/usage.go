package cgroup

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Usage is what the processes of a cgroup and of its descendants use. A field is nil if the host does not have the controller, the kernel
// does not report the figure, or the cgroup does not exist.
type Usage struct {
	CPU *CPUUsage
	// Throttling is the time that the limit of CPU time has cost.
	Throttling *Throttling
	Memory     *MemoryUsage
	// OOMKills is the number of OOM-killed processes.
	OOMKills *uint64
	// Pids is the number of processes and threads.
	Pids *uint64
	// IO is the traffic of block devices, in the order of their numbers; none if the kernel counts none.
	IO []DeviceIO
}

// CPUUsage is the CPU time since the cgroup was created.
type CPUUsage struct{ Nanoseconds uint64 }

// Throttling counts the periods of a CPU limit since the cgroup was created. Periods in which no process ran are not counted.
type Throttling struct{ Periods, Throttled, Nanoseconds uint64 }

// MemoryUsage is in bytes.
type MemoryUsage struct {
	Usage uint64
	// WorkingSet is the usage without files that have not been used recently, which the kernel frees first. It is the kubelet's figure.
	WorkingSet uint64
	RSS        uint64
	Cache      uint64  // the page cache, with tmpfs and shared memory
	Swap       *uint64 // nil: the kernel does not count it
	// Limit is that of the cgroup, not of its parents; 0: no limit.
	Limit                   uint64
	PageFaults, MajorFaults uint64
}

// UsageOf returns the usage of the cgroup at path. If the path is empty or the host has no cgroups, all figures are missing.
func UsageOf(path string) Usage {
	if path == "" {
		return Usage{}
	}
	hs, err := hierarchies()
	if err != nil {
		return Usage{}
	}
	return usageIn(hs, path)
}

func usageIn(hs []hierarchy, path string) Usage {
	if len(hs) == 1 && hs[0].v2 {
		return usageV2(filepath.Join(hs[0].mount, path))
	}
	dir := func(controller string) string {
		for _, h := range hs {
			if !h.v2 && slices.Contains(h.names, controller) {
				return filepath.Join(h.mount, path)
			}
		}
		return "" // reading fails
	}
	return usageV1(dir)
}

// usageV1 returns the usage of a cgroup with cgroup v1, where dir returns its directory for a controller.
func usageV1(dir func(controller string) string) (u Usage) {
	if ns, err := readNumber(dir("cpuacct"), "cpuacct.usage"); err == nil {
		u.CPU = &CPUUsage{ns}
	}
	if stat, err := readKeys(dir(CPU), "cpu.stat"); err == nil {
		u.Throttling = &Throttling{stat["nr_periods"], stat["nr_throttled"], stat["throttled_time"]}
	}
	memory := dir(Memory)
	usage, err := readNumber(memory, "memory.usage_in_bytes")
	stat, statErr := readKeys(memory, "memory.stat")
	if err == nil && statErr == nil {
		// The figures with the prefix total_ include descendants.
		u.Memory = newMemoryUsage(usage, stat["total_inactive_file"], stat["total_rss"], stat["total_pgfault"], stat["total_pgmajfault"])
		u.Memory.Cache = stat["total_cache"]
		if swap, ok := stat["total_swap"]; ok {
			u.Memory.Swap = &swap
		}
		if limit, err := readNumber(memory, "memory.limit_in_bytes"); err == nil && limit < unlimitedV1 {
			u.Memory.Limit = limit
		}
	}
	u.OOMKills = readKey(memory, "memory.oom_control", "oom_kill")
	u.Pids = optional(readNumber(dir(Pids), "pids.current"))
	u.IO = ioV1(dir("blkio"))
	return u
}

// unlimitedV1 is lower than the value of a limit that is not set, which is rounded down to a page, and higher than the memory of any host.
const unlimitedV1 = math.MaxInt64 - 1<<20

// usageV2 returns the usage of a cgroup with cgroup v2.
func usageV2(dir string) (u Usage) {
	if stat, err := readKeys(dir, "cpu.stat"); err == nil {
		u.CPU = &CPUUsage{stat["usage_usec"] * 1000}
		if periods, ok := stat["nr_periods"]; ok { // only with the controller cpu
			u.Throttling = &Throttling{periods, stat["nr_throttled"], stat["throttled_usec"] * 1000}
		}
	}
	usage, err := readNumber(dir, "memory.current")
	stat, statErr := readKeys(dir, "memory.stat")
	if err == nil && statErr == nil {
		u.Memory = newMemoryUsage(usage, stat["inactive_file"], stat["anon"], stat["pgfault"], stat["pgmajfault"])
		u.Memory.Limit, _ = readNumber(dir, "memory.max") // "max" is no number
		u.Memory.Cache, u.Memory.Swap = stat["file"], optional(readNumber(dir, "memory.swap.current"))
	}
	u.OOMKills = readKey(dir, "memory.events", "oom_kill")
	u.Pids = optional(readNumber(dir, "pids.current"))
	u.IO = ioV2(dir)
	return u
}

func newMemoryUsage(usage, inactiveFile, rss, faults, majorFaults uint64) *MemoryUsage {
	m := &MemoryUsage{Usage: usage, RSS: rss, PageFaults: faults, MajorFaults: majorFaults}
	if usage > inactiveFile { // the kernel updates the two at different times
		m.WorkingSet = usage - inactiveFile
	}
	return m
}

// readNumber reads a file with one number.
func readNumber(dir, file string) (uint64, error) {
	if dir == "" {
		return 0, os.ErrNotExist
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	return n, nil
}

// readKeys reads a file with a key and a number in each line. Other lines are ignored.
func readKeys(dir, file string) (map[string]uint64, error) {
	if dir == "" {
		return nil, os.ErrNotExist
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	values := map[string]uint64{}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			values[string(key)] = n
		}
	}
	return values, nil
}

// readKey reads one key of such a file; nil: the file does not have it.
func readKey(dir, file, key string) *uint64 {
	values, err := readKeys(dir, file)
	if n, ok := values[key]; ok && err == nil {
		return &n
	}
	return nil
}

func optional(n uint64, err error) *uint64 {
	if err != nil {
		return nil
	}
	return &n
}
