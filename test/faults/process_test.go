//go:build e2e || soak

package faults

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

// process waits until exactly one process of the rig has part in its command line, and returns its PID.
func (f *fixture) process(part string) (pid int) {
	f.Helper()
	f.Await(func() error {
		pids, err := f.processes(part)
		if err == nil && len(pids) != 1 {
			err = fmt.Errorf("%d processes have %q in their command line", len(pids), part)
		}
		if err == nil {
			pid = pids[0]
		}
		return err
	})
	return pid
}

// usr1 sends SIGUSR1 to the process with part in its command line. See [fixture.signal].
func (f *fixture) usr1(part string) {
	f.Helper()
	f.signal(f.process(part), unix.SIGUSR1)
}

// signal sends a signal when the process catches it: before, PID 1 of a container ignores it.
func (f *fixture) signal(pid int, sig unix.Signal) {
	f.Helper()
	f.Await(func() error {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return err
		}
		_, after, _ := strings.Cut(string(status), "\nSigCgt:\t")
		line, _, _ := strings.Cut(after, "\n")
		mask, err := strconv.ParseUint(line, 16, 64)
		if err != nil {
			return err
		}
		if mask&(1<<(sig-1)) == 0 {
			return fmt.Errorf("process %d does not catch %v: SigCgt is %s", pid, sig, line)
		}
		return unix.Kill(pid, sig)
	})
}

// running waits until the containers of a pod run, and returns what must not change while they run.
func (f *fixture) running(name string) (containers []string) {
	f.Helper()
	f.Await(func() error {
		containers = nil
		for _, c := range f.get(name).Status.ContainerStatuses {
			if c.State.Running == nil {
				return fmt.Errorf("container %s is not running: %+v", c.Name, c.State)
			}
			containers = append(containers, fmt.Sprintf("%s is %s, %d restarts", c.Name, c.ContainerID, c.RestartCount))
		}
		return nil
	})
	return containers
}

// holder waits for the monitor of the rig, which outlives its daemon, and returns its PID.
func (f *fixture) holder() (pid int) {
	f.Helper()
	f.Await(func() error {
		all, err := f.Holders()
		all = slices.DeleteFunc(all, func(p rig.Process) bool { return !p.IsMonitor() })
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("processes %v, want one", all)
		}
		if err == nil {
			pid = all[0].PID
		}
		return err
	})
	return pid
}

// ends waits until the process has exited.
func (f *fixture) ends(pid int) {
	f.Helper()
	f.Await(func() error {
		if rig.IsAlive(pid) {
			return fmt.Errorf("process %d is running", pid)
		}
		return nil
	})
}

// killHolders kills the processes that hold the containers of the rig. A monitor is started again by the next daemon.
func (f *fixture) killHolders() {
	f.Helper()
	f.Await(func() error {
		all, err := f.Holders()
		for _, p := range all {
			err = fmt.Errorf("%v is running", p)
			_ = unix.Kill(p.PID, unix.SIGKILL)
		}
		return err
	})
}

func (f *fixture) processes(part string) ([]int, error) {
	all, err := f.Processes()
	var pids []int
	for _, p := range all {
		if strings.Contains(p.Command, part) {
			pids = append(pids, p.PID)
		}
	}
	return pids, err
}

// counting prints increasing numbers, one per line.
const counting = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done"

// checkNumbers checks the output of counting for gaps and duplicates.
func checkNumbers(t *testing.T, lines []string) {
	t.Helper()
	for i, line := range lines {
		if line != strconv.Itoa(i) {
			t.Fatalf("line %d of %d is %q: a line was lost or duplicated", i, len(lines), line)
		}
	}
}
