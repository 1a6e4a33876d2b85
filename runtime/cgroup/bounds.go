package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds are the limits of a cgroup, its parents included. 0 means no limit.
type Bounds struct {
	CPU    int64 // in thousandths of a CPU
	Memory int64 // in bytes
}

// BoundsOf returns the limits of the cgroup at a path. Cgroups that do not exist have none, and limits that cannot be read are ignored.
// Above the root of a cgroup namespace nothing is visible; the root itself has the limits of the container in which this process runs.
func BoundsOf(cgroupPath string) Bounds {
	var b Bounds
	hs, err := hierarchies()
	if err != nil {
		return b
	}
	for _, h := range hs {
		for at := path.Clean("/" + cgroupPath); ; at = path.Dir(at) {
			b.add(filepath.Join(h.mount, at))
			if at == "/" {
				break
			}
		}
	}
	return b
}

// add lowers the bounds to the limits of one cgroup.
func (b *Bounds) add(dir string) {
	lower := func(have *int64, limit int64) {
		if limit > 0 && (*have == 0 || limit < *have) {
			*have = limit
		}
	}
	read := func(name string) []int64 {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil
		}
		var numbers []int64
		for field := range strings.FieldsSeq(string(text)) {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil || n <= 0 {
				return nil // max, or -1
			}
			numbers = append(numbers, n)
		}
		return numbers
	}
	for _, name := range []string{"memory.max", "memory.limit_in_bytes"} {
		if n := read(name); len(n) == 1 {
			lower(&b.Memory, n[0])
		}
	}
	quota := read("cpu.max")
	if len(quota) == 0 {
		quota = append(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")...)
	}
	if len(quota) == 2 {
		lower(&b.CPU, quota[0]*1000/quota[1])
	}
}
