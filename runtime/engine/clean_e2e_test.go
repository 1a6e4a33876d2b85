//go:build e2e

package engine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// checkClean removes the environment's directory. It fails if processes, mounts or cgroups remain on the host.
func (w *env) checkClean() {
	t := w.t
	for pid, command := range w.remaining() {
		t.Errorf("process %d remains: %s", pid, command)
		_ = unix.Kill(pid, unix.SIGKILL)
		w.eventually("process exit", func() (string, bool) { return cmdline(pid), cmdline(pid) == "" })
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, w.dir) {
			t.Errorf("mount remains: %s", line)
			_ = unix.Unmount(strings.Fields(line)[4], unix.MNT_DETACH)
		}
	}
	w.removeCgroups()
	if err := os.RemoveAll(w.dir); err != nil {
		t.Error(err)
	}
}

// remaining returns the command lines of the processes that do not exit by themselves. The monitor, or a run of the OCI
// runtime, may still be exiting when the engine has reported its exit.
func (w *env) remaining() map[int]string {
	for end := time.Now().Add(deadline); ; {
		left := map[int]string{}
		for _, pid := range w.processes() {
			if command := cmdline(pid); command != "" { // it has not exited since
				left[pid] = command
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		<-time.After(10 * time.Millisecond)
	}
}

// removeCgroups removes the environment's cgroup. It fails if the cgroup has children.
func (w *env) removeCgroups() {
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*" + w.cgroup)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, top := range append(hierarchies, "/sys/fs/cgroup"+w.cgroup) {
		var dirs []string
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append([]string{path}, dirs...)
			}
			return nil
		})
		for _, dir := range dirs {
			if dir != top {
				w.t.Errorf("cgroup remains: %s", dir)
			}
			w.eventually("removal of cgroup "+dir, func() (string, bool) {
				err := os.Remove(dir)
				return fmt.Sprint(err), err == nil
			})
		}
	}
}

// processes lists the processes of this environment: the monitor, its keeper and the processes in containers, without zombies.
func (w *env) processes() []int {
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cgroup, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
		if cmdline(pid) == "" {
			continue
		}
		if strings.Contains(cmdline(pid), w.dir) || strings.Contains(string(cgroup), w.cgroup) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func cmdline(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(b), "\x00", " ")
}
