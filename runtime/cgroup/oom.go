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

// MemoryGroup is a cgroup in the hierarchy with the memory controller.
type MemoryGroup struct {
	dir     string
	unified bool
}

// MemoryGroupOf returns the cgroup of a process. If the memory controller is not available, the error is [fs.ErrNotExist].
func MemoryGroupOf(pid int) (MemoryGroup, error) {
	hs, err := hierarchiesOf(strconv.Itoa(pid))
	if err != nil {
		return MemoryGroup{}, err
	}
	for _, h := range hs {
		if h.v2 && len(hs) == 1 || slices.Contains(h.names, Memory) {
			return MemoryGroup{filepath.Join(h.mount, h.own), h.v2}, nil
		}
	}
	return MemoryGroup{}, fmt.Errorf("find memory cgroup of process %d: %w", pid, fs.ErrNotExist)
}

// MemoryGroupIn returns the cgroup with this directory.
func MemoryGroupIn(dir string, unified bool) MemoryGroup { return MemoryGroup{dir, unified} }

// Dir returns the directory of the cgroup.
func (m MemoryGroup) Dir() string { return m.dir }

// Parent returns the parent cgroup.
func (m MemoryGroup) Parent() MemoryGroup { return MemoryGroup{filepath.Dir(m.dir), m.unified} }

// Unified reports whether it is a cgroup of v2. Its OOM kills include those of its descendants.
func (m MemoryGroup) Unified() bool { return m.unified }

// OOMKills returns the number of processes of the cgroup that the kernel has OOM-killed, because the cgroup, a parent or the host was out
// of memory. The kernel increments the number before it kills. If the cgroup was removed, the error is [fs.ErrNotExist].
func (m MemoryGroup) OOMKills() (int64, error) {
	name := "memory.oom_control"
	if m.unified {
		name = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(m.dir, name))
	if errors.Is(err, unix.ENODEV) { // removed while it was read
		err = fs.ErrNotExist
	}
	if err != nil {
		return 0, fmt.Errorf("read OOM kills: %w", err)
	}
	for line := range bytes.Lines(text) {
		if key, count, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(key) == "oom_kill" {
			return strconv.ParseInt(string(count), 10, 64)
		}
	}
	return 0, nil // before Linux 4.13 there is no counter
}

// MemoryPeak is the most memory that the cgroup has used, in bytes. It is 0 where the kernel does not report it: cgroup v2 has
// memory.peak since Linux 5.19.
func (m MemoryGroup) MemoryPeak() int64 {
	name := "memory.max_usage_in_bytes"
	if m.unified {
		name = "memory.peak"
	}
	peak, _ := readNumber(m.dir, name)
	return int64(peak)
}
