//go:build e2e

package runtime_test

import (
	"bytes"
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

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// exec runs a script in a container.
func (p *pod) exec(ref lifecycle.Ref, timeout time.Duration, script string) (int, string, error) {
	code, output, err := p.Exec(p.ctx(), uid, ref, []string{"sh", "-c", script}, timeout, 10<<10)
	return code, string(output), err
}

// living lists the command lines of the processes in the pod's containers, without those that have ended.
func (p *pod) living() []string {
	p.Helper()
	var lines []string
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		p.Fatal(err)
	}
	for _, file := range files {
		cgroup, _ := os.ReadFile(file)
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if strings.Contains(string(cgroup), p.cgroup(uid)+"/") && len(cmdline) > 0 {
			lines = append(lines, string(bytes.ReplaceAll(bytes.TrimRight(cmdline, "\x00"), []byte{0}, []byte{' '})))
		}
	}
	return lines
}

// onlyTheContainer waits until nothing but the container's first process lives.
func (p *pod) onlyTheContainer() {
	p.Helper()
	p.eventually("the end of all that was left behind", func() (string, bool) {
		living := p.living()
		return fmt.Sprintf("%q", living), len(living) == 1 && living[0] == "sleep 100000"
	})
}

// execPod has one container that does nothing.
func execPod(t *testing.T) (*pod, lifecycle.Ref) {
	p := newPod(newMachine(t), &spec.Pod{})
	c := spec.Container{Command: []string{"sleep", "100000"}, Env: []spec.EnvVar{{Name: "A", Value: "1"}}, WorkingDir: "/tmp"}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	return p, ref
}

// A command finds the container's environment, folder and user, and little more.
func TestExecInside(t *testing.T) {
	p, ref := execPod(t)
	code, output, err := p.exec(ref, deadline, `echo "$A"; pwd; id -u; grep -E '^(CapEff|Seccomp|NoNewPrivs):' /proc/self/status | tr -d '\t'
		cat /proc/self/oom_score_adj; tty; cat; ls /proc/self/fd | wc -l`)
	if code != 0 || err != nil {
		t.Fatalf("ended with %d, %v: %s", code, err, output)
	}
	wantLines(t, output, "1", "/tmp", "0", "CapEff:00000000a80425fb", "NoNewPrivs:0", "Seccomp:2", "1000", "not a tty", "4")
}

// Whatever a command leaves running, however it tries to get away, has ended soon after the timeout; and a command that
// has ended itself has its verdict at once.
func TestExecLeavesNothing(t *testing.T) {
	p, ref := execPod(t)
	for _, test := range []struct {
		name, script string
		code         int
		timedOut     bool
	}{
		{"hangs", "sleep 9999", 0, true},
		{"ignores signals", "trap '' TERM INT HUP; while :; do sleep 9999; done", 0, true},
		{"forks and hangs", "sleep 9999 & sleep 9998 & wait", 0, true},
		{"forks twice and hangs", "(sleep 9999 & sleep 9998 &) ; sleep 9997", 0, true},
		{"floods", "yes", 0, true},
		{"child holds the output", "sleep 9999 & exit 0", 0, false},
		{"child holds the output, failed", "sleep 9999 & echo no; exit 7", 7, false},
		{"daemon", "setsid sleep 9999 >/dev/null 2>&1 & exit 0", 0, false},
		{"daemon without environment", "env -i /bin/sleep 9999 >/dev/null 2>&1 & exit 0", 0, false},
		{"daemon that ignores signals", "(trap '' TERM HUP; setsid sh -c 'while :; do sleep 9999; done' &) ; exit 0", 0, false},
		{"child floods", "yes & exit 0", 0, false},
		{"daemon forks for ever", "setsid sh -c 'while :; do sleep 9999 & sleep 0.01; done' & exit 0", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			timeout := 2 * time.Second
			if !test.timedOut {
				timeout = 5 * time.Second // in which it has to end itself
			}
			begun := time.Now()
			code, output, err := p.exec(ref, timeout, test.script)
			took := time.Since(begun)
			if timedOut := errors.Is(err, context.DeadlineExceeded); timedOut != test.timedOut || code != test.code || !timedOut && err != nil {
				t.Errorf("ended with %d, %q, %v", code, output, err)
			}
			if test.timedOut && took < timeout {
				t.Errorf("timed out after %v, want %v at least", took, timeout)
			}
			p.onlyTheContainer()
			if !test.timedOut && time.Since(begun) < timeout {
				t.Errorf("what was left had ended after %v, want %v at least", time.Since(begun), timeout)
			}
		})
	}
}

// What a hook leaves behind lives on: it has no time limit. What a hook that is given up has started has ended.
func TestExecWithoutLimit(t *testing.T) {
	p, ref := execPod(t)
	ctx, cancel := context.WithTimeout(p.ctx(), time.Second)
	defer cancel()
	_, _, err := p.Exec(ctx, uid, ref, []string{"sh", "-c", "setsid sleep 9999 & sleep 9998"}, 0, 100)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: got %v", err)
	}
	p.onlyTheContainer()
	if code, _, err := p.exec(ref, 0, "setsid sleep 9999 & exit 0"); code != 0 || err != nil {
		t.Errorf("ended with %d, %v", code, err)
	}
	// A second, limited one does not take the first one's process along.
	if code, _, err := p.exec(ref, 5*time.Second, "sleep 9997 & exit 0"); code != 0 || err != nil {
		t.Errorf("ended with %d, %v", code, err)
	}
	p.eventually("the end of the limited one's process alone", func() (string, bool) {
		living := fmt.Sprintf("%q", p.living())
		return living, strings.Contains(living, "9999") && !strings.Contains(living, "9997")
	})
}

// A flood is cut to what was asked for, and does not hold the command up.
func TestExecFlood(t *testing.T) {
	p, ref := execPod(t)
	code, output, err := p.exec(ref, deadline, "head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2; exit 4")
	if code != 4 || err != nil || len(output) != 10<<10 {
		t.Errorf("ended with %d, %v and %d bytes", code, err, len(output))
	}
}

// Commands leave no goroutine, descriptor or folder.
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
	p.eventually("rest", func() (string, bool) {
		g, f, d := count()
		settled := g == before[0] && f == before[1] && d == 0 && len(p.living()) == 1
		before = [2]int{g, f}
		<-time.After(200 * time.Millisecond)
		return fmt.Sprint(g, f, d), settled
	})
	for range 4 {
		run()
	}
	p.eventually("as many goroutines and descriptors as before", func() (string, bool) {
		g, f, d := count()
		return fmt.Sprintf("%d goroutines, %d descriptors, %d folders; before %v", g, f, d, before),
			g <= before[0] && f <= before[1] && d == 0
	})
	p.onlyTheContainer()
}

// A runtime that is closed ends its commands. One that was killed has not: the next one ends those that had a time limit,
// and those without that have not ended themselves.
func TestExecOverRestart(t *testing.T) {
	p, ref := execPod(t)
	ended := make(chan error, 1)
	ctx := p.ctx()
	go func() {
		_, _, err := p.Exec(ctx, uid, ref, []string{"sleep", "9999"}, 0, 100)
		ended <- err
	}()
	p.eventually("the command", func() (string, bool) { l := p.living(); return fmt.Sprint(l), len(l) == 2 })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a command was ended and told no error")
	}
	p.machine.start()
	p.onlyTheContainer()
	if _, _, err := p.exec(ref, deadline, "true"); err != nil {
		t.Error(err)
	}
}

// A daemon that was killed has left its commands. The next one ends those that had a time limit, with all that they have
// started, and those without that have not ended themselves, but not what a hook that had ended has left on purpose.
func TestExecOverKill(t *testing.T) {
	p, ref := execPod(t)
	code, _, err := p.exec(ref, 0, `
		PODSTEAD_EXEC=0123abcd-1-probe sleep 9991 &
		PODSTEAD_EXEC=0123abcd-2-probe setsid sleep 9992 &
		PODSTEAD_EXEC=0123abcd-3-hook setsid sh -c 'sleep 9993; true' &
		PODSTEAD_EXEC=0123abcd-4-hook sleep 9994 &
		PODSTEAD_EXEC=nonsense setsid sleep 9995 &
		exit 0`)
	if code != 0 || err != nil {
		t.Fatalf("ended with %d, %v", code, err)
	}
	live := func(want ...string) {
		t.Helper()
		p.eventually(fmt.Sprintf("just %q", want), func() (string, bool) {
			living := p.living()
			slices.Sort(living)
			return fmt.Sprintf("%q", living), slices.Equal(living, want)
		})
	}
	live("sh -c sleep 9993; true", "sleep 100000", "sleep 9991", "sleep 9992", "sleep 9993", "sleep 9994", "sleep 9995")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.machine.start()
	live("sleep 100000", "sleep 9994", "sleep 9995")
}
