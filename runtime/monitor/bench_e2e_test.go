//go:build e2e

package monitor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCosts measures what the monitor adds to the OCI runtime: to the start of a container, and to a probe.
func TestCosts(t *testing.T) {
	w := newWorld(t)
	const runs = 30
	c := w.run(testContainer{}, "sleep 1000")
	_, monitor := w.pids()
	spec := filepath.Join(w.base, "process.json")
	w.must(os.WriteFile(spec, w.processJSON("true", ""), 0o600))
	var bare, probes, starts time.Duration
	var cpu time.Duration
	for range runs { // in turns
		begun := time.Now()
		pid := filepath.Join(w.base, "bare.pid")
		args := []string{"--root", filepath.Join(w.base, "runtime"), "exec", "--process", spec, "--pid-file", pid, c.ID}
		out, err := exec.Command(w.binary, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		bare += time.Since(begun)

		before := cpuOf(t, monitor)
		begun = time.Now()
		w.must(w.probe(c.ID, patience))
		probes += time.Since(begun)
		cpu += cpuOf(t, monitor) - before
		begun = time.Now()
		other := w.run(testContainer{}, "sleep 1000")
		starts += time.Since(begun)
		w.killAndDelete(other.ID)
	}
	t.Logf("means of %d: bare exec %v; probe %v, of which CPU of the monitor %v; create and start %v",
		runs, bare/runs, probes/runs, cpu/runs, starts/runs)
	if cpu/runs > 50*time.Millisecond {
		t.Errorf("a probe costs %v of CPU in the monitor", cpu/runs)
	}
	w.killAndDelete(c.ID)
	w.wantNothing()
}

// cpuOf returns the CPU time of a process, without its children.
func cpuOf(t *testing.T, pid int) (total time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no threads of %d: %s %v", pid, text, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // it has exited
		}
		var ns int64
		if _, err := fmt.Sscan(strings.Fields(string(text))[0], &ns); err == nil {
			total += time.Duration(ns)
		}
	}
	return total
}
