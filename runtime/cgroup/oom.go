package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// MemoryGroup is a cgroup in the hierarchy that has the memory controller.
type MemoryGroup struct {
	dir     string
	unified bool
}

// MemoryGroupOf is the one that a process lies in. Without the controller there is none, which is an [fs.ErrNotExist].
func MemoryGroupOf(pid int) (MemoryGroup, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return MemoryGroup{}, err
	}
	places, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return MemoryGroup{}, err
	}
	hs := parseHierarchies(string(mounts), string(places))
	for _, h := range hs {
		if h.v2 && len(hs) == 1 || slices.Contains(h.names, Memory) {
			return MemoryGroup{filepath.Join(h.mount, h.own), h.v2}, nil
		}
	}
	return MemoryGroup{}, fmt.Errorf("find memory cgroup of process %d: %w", pid, fs.ErrNotExist)
}

// MemoryGroupIn is the one in a folder of a hierarchy that has the memory controller.
func MemoryGroupIn(dir string, unified bool) MemoryGroup { return MemoryGroup{dir, unified} }

// Parent is the one above.
func (m MemoryGroup) Parent() MemoryGroup { return MemoryGroup{filepath.Dir(m.dir), m.unified} }

// Unified says that it is one of cgroup v2, whose OOMKills are also those of all below it.
func (m MemoryGroup) Unified() bool { return m.unified }

// OOMKills is how many processes of the cgroup the kernel has killed for want of memory, be it the cgroup's, its parents' or
// the machine's. The kernel counts before it kills. The error of a cgroup that is gone is an [fs.ErrNotExist].
func (m MemoryGroup) OOMKills() (int64, error) {
	name := "memory.oom_control"
	if m.unified {
		name = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(m.dir, name))
	if errors.Is(err, unix.ENODEV) { // it was removed meanwhile
		err = fs.ErrNotExist
	}
	if err != nil {
		return 0, fmt.Errorf("look for OOM kills: %w", err)
	}
	for line := range bytes.Lines(text) {
		if key, count, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(key) == "oom_kill" {
			return strconv.ParseInt(string(count), 10, 64)
		}
	}
	return 0, nil // before Linux 4.13 nobody counts
}

// MemoryPeak is the most memory that the cgroup has used, in bytes. It is 0 where the kernel does not report it: cgroup v2 has
// memory.peak since Linux 5.19.
func (m MemoryGroup) MemoryPeak() int64 {
	name := "memory.max_usage_in_bytes"
	if m.unified {
		name = "memory.peak"
	}
	text, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil {
		return 0
	}
	peak, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0
	}
	return peak
}
