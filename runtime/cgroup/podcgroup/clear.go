package podcgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/proctree"
)

// clearTimeout is the time for the exit of killed processes. After it, those that are left are named.
const clearTimeout = 5 * time.Second

// maxNamed limits how many processes and cgroups are named.
const maxNamed = 5

// Cleared is what was killed and removed in the cgroup of a pod. The zero value is nothing.
type Cleared struct {
	Processes []string // such as "sleep (PID 123)"
	Cgroups   []string // names of cgroups that were not those of containers
}

// Any reports whether there was anything.
func (c Cleared) Any() bool { return len(c.Processes)+len(c.Cgroups) > 0 }

// String lists what was cleared, for a person.
func (c Cleared) String() string {
	var parts []string
	if len(c.Processes) > 0 {
		parts = append(parts, "processes "+few(c.Processes))
	}
	if len(c.Cgroups) > 0 {
		parts = append(parts, "cgroups "+few(c.Cgroups))
	}
	return strings.Join(parts, ", ")
}

func few(list []string) string {
	if more := len(list) - maxNamed; more > 0 {
		return strings.Join(list[:maxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(list, ", ")
}

// Clear kills every process in the cgroup of a pod and removes the cgroups in it, in all hierarchies. What is in the cgroup of a pod
// belongs to the pod, whoever has put it there. The caller makes sure that the pod has no sandbox. After 5 s, the error names the
// processes that have not exited.
func (g Groups) Clear(ctx context.Context, uid string) (Cleared, error) {
	pod, err := cgroup.Dirs(g.Pod(uid))
	if err != nil || len(pod) == 0 {
		return Cleared{}, err
	}
	var cleared Cleared
	for _, dir := range pod {
		list, listErr := proctree.List(dir)
		err = errors.Join(err, listErr)
		for _, p := range list {
			cleared.Processes = append(cleared.Processes, describe(p.PID))
		}
		for _, child := range children(dir) {
			if !g.isContainer(child) {
				cleared.Cgroups = append(cleared.Cgroups, child)
			}
		}
	}
	slices.Sort(cleared.Processes)
	slices.Sort(cleared.Cgroups)
	cleared.Processes, cleared.Cgroups = slices.Compact(cleared.Processes), slices.Compact(cleared.Cgroups)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, clearTimeout)
		defer cancel()
		err = killAll(limited, pod)
	}
	for _, dir := range pod {
		for _, child := range children(dir) {
			if err == nil {
				err = cgroup.RemoveTree(filepath.Join(dir, child))
			}
		}
	}
	if err != nil {
		return cleared, fmt.Errorf("clear cgroup %s: %w", g.Pod(uid), err)
	}
	return cleared, nil
}

// killAll kills the processes in the directories of a cgroup, and in those below, until none is left. A frozen cgroup of v1 is thawed,
// because a signal has no effect in it.
func killAll(ctx context.Context, dirs []string) error {
	tick := time.NewTicker(killInterval)
	defer tick.Stop()
	for {
		var left []proctree.Process
		for _, dir := range dirs {
			list, err := proctree.List(dir)
			if err != nil {
				return err
			}
			left = append(left, list...)
		}
		if len(left) == 0 {
			return nil
		}
		if slices.ContainsFunc(left, func(p proctree.Process) bool { return p.PID == os.Getpid() }) {
			return fmt.Errorf("the daemon itself is in cgroup %s", dirs[0])
		}
		for _, p := range left {
			p.Kill()
		}
		for _, dir := range dirs {
			if write(filepath.Join(dir, "cgroup.kill"), "1") != nil { // only v2 of Linux 5.14 has it
				thaw(dir)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return stuck(left)
		}
	}
}

// killInterval is the time between two looks at killed processes.
const killInterval = 20 * time.Millisecond

// stuck is the error for processes that do not exit.
func stuck(left []proctree.Process) error {
	var names []string
	for _, p := range left {
		names = append(names, describe(p.PID))
	}
	slices.Sort(names)
	return fmt.Errorf("killed processes do not exit: %s", few(slices.Compact(names)))
}

// thaw thaws a cgroup of the freezer of v1 and its descendants, the upper ones first. It does nothing in other hierarchies.
func thaw(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if write(filepath.Join(path, "freezer.state"), "THAWED") != nil {
			return filepath.SkipAll
		}
		return nil
	})
}

// write writes to a file of a cgroup. It does not create one.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// describe returns the name of a process, and its state if that can keep it from exiting.
func describe(pid int) string {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return fmt.Sprintf("PID %d", pid)
	}
	text := fmt.Sprintf("%s (PID %d", strings.TrimSpace(string(name)), pid)
	stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
	if _, after, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(after, "D") {
		text += ", waits for a device"
	}
	return text + ")"
}

// children returns the names of the cgroups in one.
func children(dir string) []string {
	entries, _ := os.ReadDir(dir) // removed meanwhile
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// containerID returns the ID in the name of a container's cgroup; "" for another name.
func (g Groups) containerID(name string) string {
	if g.systemd {
		var scope bool
		name, scope = strings.CutSuffix(strings.TrimPrefix(name, unitPrefix+"-"), ".scope")
		if !scope {
			return ""
		}
	}
	const digits = 64 // of a SHA-256
	if len(name) != digits || strings.Trim(name, "0123456789abcdef") != "" {
		return ""
	}
	return name
}

func (g Groups) isContainer(name string) bool { return g.containerID(name) != "" }

// Containers returns the IDs of the containers and of the processes of sandboxes that have a cgroup, by the UID of their pod. A pod
// without such a cgroup has no IDs. The cgroups may be those of another daemon.
func (g Groups) Containers() (map[string][]string, error) {
	parents, err := cgroup.Dirs(g.Parent())
	found := map[string][]string{}
	for _, parent := range parents {
		for _, name := range children(parent) {
			uid := g.podUID(name)
			if uid == "" {
				continue
			}
			ids := found[uid]
			for _, child := range children(filepath.Join(parent, name)) {
				if id := g.containerID(child); id != "" && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
			found[uid] = ids
		}
	}
	return found, err
}

// podUID returns the UID in the name of a pod's cgroup; "" for another name.
func (g Groups) podUID(name string) string {
	if g.systemd {
		var slice bool
		name, slice = strings.CutSuffix(strings.TrimPrefix(name, unitPrefix+"-"), ".slice")
		if !slice {
			return ""
		}
		name = strings.ReplaceAll(name, "_", "-")
	}
	if uuid.Validate(name) != nil {
		return ""
	}
	return name
}
