package cgroup

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// mounted has the mounts of the hierarchies of this host.
var mounted = mountTable{
	read: func() (string, error) {
		text, err := os.ReadFile("/proc/self/mountinfo")
		return string(text), err
	},
	isHierarchy: func(path string) bool {
		var s unix.Statfs_t
		return unix.Statfs(path, &s) == nil && (s.Type == unix.CGROUP_SUPER_MAGIC || s.Type == unix.CGROUP2_SUPER_MAGIC)
	},
}

// mountTable keeps the lines of /proc/self/mountinfo that are for hierarchies. The kernel formats the whole table for each reader, and it
// has several lines for each container. It is read again when a hierarchy is no longer mounted where it was. A hierarchy that is mounted
// later, beside others, is found by the next daemon.
type mountTable struct {
	read        func() (string, error)
	isHierarchy func(path string) bool

	mu    sync.Mutex
	lines []string
	paths []string // of their mount points
}

// hierarchies returns the lines for hierarchies.
func (t *mountTable) hierarchies() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.valid() {
		text, err := t.read()
		if err != nil {
			return "", err
		}
		t.lines, t.paths = nil, nil
		for line := range strings.Lines(text) {
			before, after, found := strings.Cut(line, " - ")
			if left := strings.Fields(before); found && strings.HasPrefix(after, "cgroup") && len(left) > 4 {
				t.lines, t.paths = append(t.lines, line), append(t.paths, left[4])
			}
		}
	}
	return strings.Join(t.lines, ""), nil
}

func (t *mountTable) valid() bool {
	for _, path := range t.paths {
		if !t.isHierarchy(path) {
			return false
		}
	}
	return len(t.paths) > 0
}
