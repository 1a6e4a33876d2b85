package proctree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/cgroup"
)

// maxNamed limits how many names [Few] lists.
const maxNamed = 5

// KillCgroup kills the processes in the directories of a cgroup, one for each hierarchy, and in those below, until none is left. In place
// of a directory it takes a PID namespace in the form of [NamespaceOf]. Its error names what is left at the end of ctx. It freezes cgroups
// of v1 while it kills, so that they start no other process, and thaws them, because a signal has no effect in a frozen one.
func KillCgroup(ctx context.Context, dirs []string) error {
	defer hold(dirs)()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		left, err := listAll(dirs)
		if err != nil || len(left) == 0 {
			return err
		}
		if slices.ContainsFunc(left, func(p Process) bool { return p.PID == os.Getpid() }) {
			return fmt.Errorf("the daemon itself is in cgroup %s", dirs[0])
		}
		if err := killOnce(dirs); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return stuck(left)
		}
	}
}

// hold opens the PID namespaces in a list, until the returned function is called: the kernel gives the number of a namespace that does not
// exist any more to another one.
func hold(dirs []string) (release func()) {
	var open []*os.File
	for _, name := range dirs {
		if !isNamespace(name) {
			continue
		}
		list, _ := listNamespace(name) // KillCgroup reports the error
		for _, p := range list {
			f, err := os.Open(filepath.Join("/proc", p.String(), "ns/pid"))
			if err != nil {
				continue // it has exited
			}
			open = append(open, f)
			if is, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); is == name {
				break
			}
		}
	}
	return func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
}

func listAll(dirs []string) ([]Process, error) {
	var all []Process
	for _, dir := range dirs {
		list, err := List(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// killOnce sends SIGKILL to the processes of a cgroup.
func killOnce(dirs []string) error {
	for _, dir := range dirs {
		if cgroup.Write(filepath.Join(dir, "cgroup.kill"), "1") != nil { // only v2 of Linux 5.14 has it
			_ = cgroup.Write(filepath.Join(dir, "freezer.state"), "FROZEN") // only the freezer of v1 has it
			defer thaw(dir)
		}
	}
	list, err := listAll(dirs)
	for _, p := range list {
		p.Kill()
	}
	return err
}

// thaw thaws a cgroup of the freezer of v1 and its descendants, the upper ones first. It does nothing in other hierarchies.
func thaw(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if cgroup.Write(filepath.Join(path, "freezer.state"), "THAWED") != nil {
			return filepath.SkipAll
		}
		return nil
	})
}

// stuck is the error for processes that do not exit.
func stuck(left []Process) error {
	var names []string
	for _, p := range left {
		names = append(names, p.Describe())
	}
	slices.Sort(names)
	return fmt.Errorf("killed processes do not exit: %s", Few(slices.Compact(names)))
}

// Few lists names for a person, at most five of them.
func Few(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// Describe returns the name of the process and its PID, and its state if that can keep it from exiting, such as "sleep (PID 123)".
func (p Process) Describe() string {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "comm"))
	if err != nil {
		return fmt.Sprintf("PID %d", p.PID)
	}
	text := fmt.Sprintf("%s (PID %d", strings.TrimSpace(string(name)), p.PID)
	if s, err := proc.StatOf(p.PID); err == nil && s.State == 'D' {
		text += ", waits for a device"
	}
	return text + ")"
}
