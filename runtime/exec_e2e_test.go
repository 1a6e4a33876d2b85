//go:build e2e

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// exec runs a script in a container.
func (p *pod) exec(ref lifecycle.Ref, timeout time.Duration, script string) (int, string, error) {
	code, output, err := p.Exec(p.ctx(), uid, ref, []string{"sh", "-c", script}, timeout, 10<<10)
	return code, string(output), err
}

// running returns the command lines of the running processes in the pod's containers.
func (p *pod) running() []string {
	p.Helper()
	var lines []string
	pids, err := proc.List()
	if err != nil {
		p.Fatal(err)
	}
	for _, pid := range pids {
		cgroup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if !strings.Contains(string(cgroup), p.cgroup(uid)+"/") {
			continue
		}
		if stat, err := proc.StatOf(pid); err == nil && stat.Running() {
			lines = append(lines, strings.Join(proc.Args(pid), " ")) // empty at the start of a program
		}
	}
	return lines
}

// waitForOthers waits until only the first process of the container is running.
func (p *pod) waitForOthers() {
	p.Helper()
	p.eventually("the exit of all other processes", func() (string, bool) {
		running := p.running()
		return fmt.Sprintf("%q", running), len(running) == 1 && running[0] == "sleep 100000"
	})
}

// execPod returns a pod with one container that sleeps.
func execPod(t *testing.T) (*pod, lifecycle.Ref) {
	p := newPod(newTestHost(t), &spec.Pod{})
	c := spec.Container{Command: []string{"sleep", "100000"}, Env: []spec.EnvVar{{Name: "A", Value: "1"}}, WorkingDir: "/tmp"}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	return p, ref
}

// A command has the environment, the working directory, the user and the restrictions of its container.
func TestExecEnvironment(t *testing.T) {
	p, ref := execPod(t)
	code, output, err := p.exec(ref, deadline,
		`echo "$A"; pwd; id -u; grep -E '^(CapEff|Seccomp|NoNewPrivs):' /proc/self/status | tr -d '\t'
		cat /proc/self/oom_score_adj; tty; cat; ls /proc/self/fd | wc -l`)
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, output)
	}
	wantLines(t, output, "1", "/tmp", "0", "CapEff:00000000a80425fb", "NoNewPrivs:0", "Seccomp:2", "1000", "not a tty", "4")
}

// All processes that a command leaves are killed soon after its timeout. The result of a command that exits earlier is returned at once.
func TestExecKillsProcesses(t *testing.T) {
	p, ref := execPod(t)
	for _, test := range []struct {
		name, script string
		code         int
		timedOut     bool
	}{
		{"sleeps", "sleep 9999", 0, true},
		{"ignores signals", "trap '' TERM INT HUP; while :; do sleep 9999; done", 0, true},
		{"forks and sleeps", "sleep 9999 & sleep 9998 & wait", 0, true},
		{"forks twice and sleeps", "(sleep 9999 & sleep 9998 &) ; sleep 9997", 0, true},
		{"writes without end", "yes", 0, true},
		{"child holds the output", "sleep 9999 & exit 0", 0, false},
		{"child holds the output, failed", "sleep 9999 & echo no; exit 7", 7, false},
		{"daemon", "setsid sleep 9999 >/dev/null 2>&1 & exit 0", 0, false},
		{"daemon without environment", "env -i /bin/sleep 9999 >/dev/null 2>&1 & exit 0", 0, false},
		{"daemon that ignores signals", "(trap '' TERM HUP; setsid sh -c 'while :; do sleep 9999; done' &) ; exit 0", 0, false},
		{"child writes without end", "yes & exit 0", 0, false},
		{"daemon forks without end", "setsid sh -c 'while :; do sleep 9999 & sleep 0.01; done' & exit 0", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			timeout := 2 * time.Second
			if !test.timedOut {
				timeout = 5 * time.Second // it must exit by itself before
			}
			start := time.Now()
			code, output, err := p.exec(ref, timeout, test.script)
			took := time.Since(start)
			if timedOut := errors.Is(err, context.DeadlineExceeded); timedOut != test.timedOut || code != test.code ||
				!timedOut && err != nil {
				t.Errorf("exit code %d, output %q, %v", code, output, err)
			}
			if test.timedOut && took < timeout {
				t.Errorf("timed out after %v, want at least %v", took, timeout)
			}
			p.waitForOthers()
			if !test.timedOut && time.Since(start) < timeout {
				t.Errorf("processes were killed after %v, want at least %v", time.Since(start), timeout)
			}
		})
	}
}

// The processes that a hook leaves keep running, because a hook has no timeout. Those of a cancelled hook are killed.
func TestExecWithoutTimeout(t *testing.T) {
	p, ref := execPod(t)
	ctx, cancel := context.WithTimeout(p.ctx(), time.Second)
	defer cancel()
	_, _, err := p.Exec(ctx, uid, ref, []string{"sh", "-c", "setsid sleep 9999 & sleep 9998"}, 0, 100)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: got %v", err)
	}
	p.waitForOthers()
	if code, _, err := p.exec(ref, 0, "setsid sleep 9999 & exit 0"); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	// A second command with a timeout does not kill the process of the first.
	if code, _, err := p.exec(ref, 5*time.Second, "sleep 9997 & exit 0"); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	p.eventually("the exit of the second command's process only", func() (string, bool) {
		running := fmt.Sprintf("%q", p.running())
		return running, strings.Contains(running, "9999") && !strings.Contains(running, "9997")
	})
}

// Long output is truncated and does not block the command.
func TestExecOutputLimit(t *testing.T) {
	p, ref := execPod(t)
	code, output, err := p.exec(ref, deadline, "head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2; exit 4")
	if code != 4 || err != nil || len(output) != 10<<10 {
		t.Errorf("exit code %d, %v and %d bytes", code, err, len(output))
	}
}

// Commands leave no goroutine, file descriptor or directory.
func TestExecLeak(t *testing.T) {
	p, ref := execPod(t)
	run := func() {
		var group sync.WaitGroup
		for i := range 12 {
			script := []string{"true", "sleep 9 & exit 1", "sleep 9", "echo x"}[i%4]
			group.Go(func() { _, _, _ = p.exec(ref, 300*time.Millisecond, script) })
		}
		group.Wait()
	}
	count := func() (int, int, int) {
		fds, _ := os.ReadDir("/proc/self/fd")
		dirs, _ := os.ReadDir(filepath.Join(p.opts.RunDir, "exec"))
		return goruntime.NumGoroutine(), len(fds), len(dirs)
	}
	run()
	var before [2]int
	p.eventually("a stable number of goroutines and descriptors", func() (string, bool) {
		g, f, d := count()
		settled := g == before[0] && f == before[1] && d == 0 && len(p.running()) == 1
		before = [2]int{g, f}
		<-time.After(200 * time.Millisecond)
		return fmt.Sprint(g, f, d), settled
	})
	for range 4 {
		run()
	}
	p.eventually("as many goroutines and descriptors as before", func() (string, bool) {
		g, f, d := count()
		return fmt.Sprintf("%d goroutines, %d descriptors, %d directories; before %v", g, f, d, before),
			g <= before[0] && f <= before[1] && d == 0
	})
	p.waitForOthers()
}

// Closing the runtime kills running commands.
func TestExecClose(t *testing.T) {
	p, ref := execPod(t)
	done := make(chan error, 1)
	ctx := p.ctx()
	go func() {
		_, _, err := p.Exec(ctx, uid, ref, []string{"sleep", "9999"}, 0, 100)
		done <- err
	}()
	p.eventually("the command", func() (string, bool) { l := p.running(); return fmt.Sprint(l), len(l) == 2 })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a killed command returned no error")
	}
	p.testHost.start()
	p.waitForOthers()
	if _, _, err := p.exec(ref, deadline, "true"); err != nil {
		t.Error(err)
	}
}

// A daemon that was killed leaves its commands. The next daemon kills all processes of commands with a timeout, but not the processes that
// a completed hook has left. For hooks that are running, see TestDaemonKilled.
func TestExecAfterDaemonKill(t *testing.T) {
	p, ref := execPod(t)
	code, _, err := p.exec(ref, 0, `
		PODSTEAD_EXEC=0123abcd-1-probe sleep 9991 &
		PODSTEAD_EXEC=0123abcd-2-probe setsid sleep 9992 &
		PODSTEAD_EXEC=0123abcd-3-hook setsid sleep 9993 &
		PODSTEAD_EXEC=0123abcd-4-hook sleep 9994 &
		PODSTEAD_EXEC=invalid setsid sleep 9995 &
		exit 0`)
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, %v", code, err)
	}
	wantRunning := func(want ...string) {
		t.Helper()
		p.eventually(fmt.Sprintf("only %q running", want), func() (string, bool) {
			running := p.running()
			slices.Sort(running)
			return fmt.Sprintf("%q", running), slices.Equal(running, want)
		})
	}
	wantRunning("sleep 100000", "sleep 9991", "sleep 9992", "sleep 9993", "sleep 9994", "sleep 9995")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.testHost.start()
	wantRunning("sleep 100000", "sleep 9993", "sleep 9994", "sleep 9995")
}
