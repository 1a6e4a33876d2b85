//go:build e2e

package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// TestInheritance has a container that reports what it has inherited: nothing of the monitor.
func TestInheritance(t *testing.T) {
	w := newWorld(t)
	const report = `umask; grep -E "^(SigBlk|SigIgn|Seccomp|NoNewPrivs):" /proc/self/status; cat /proc/self/oom_score_adj; ls /proc/self/fd`
	c := w.run(testContainer{}, report)
	w.awaitExit(c.ID)
	w.delete(c.ID)
	got := strings.Join(w.log(c.ID, ""), " ")
	got = strings.Join(strings.Fields(got), " ")
	// The signals 32 and 33 belong to the C library. What starts the tests may ignore them, and Go does not touch them.
	got = regexp.MustCompile(`SigIgn: [0-9a-f]{16}`).ReplaceAllStringFunc(got, func(s string) string {
		ignored, err := strconv.ParseUint(strings.TrimPrefix(s, "SigIgn: "), 16, 64)
		w.must(err)
		return fmt.Sprintf("SigIgn: %016x", ignored&^(3<<31))
	})
	const want = "0022 SigBlk: 0000000000000000 SigIgn: 0000000000000000 NoNewPrivs: 0 Seccomp: 0 100 0 1 2 3"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var own unix.Rlimit
	w.must(unix.Prlimit(os.Getpid(), unix.RLIMIT_NOFILE, nil, &own))
	sleeper := w.run(testContainer{}, "sleep 1000")
	for _, limit := range []int{unix.RLIMIT_NOFILE} {
		var hard, theirs unix.Rlimit
		w.must(unix.Prlimit(w.keeper.Process.Pid, limit, nil, &hard))
		w.must(unix.Prlimit(sleeper.PID, limit, nil, &theirs))
		if theirs.Max != own.Max || theirs.Cur > own.Cur {
			t.Errorf("limit of open files: container %+v, this process %+v, keeper %+v", theirs, own, hard)
		}
	}
	w.killAndDelete(sleeper.ID)
	w.wantNothing()
}

// TestOOM has a container that the kernel OOM-kills, before and after the death of a monitor.
func TestOOM(t *testing.T) {
	w := newWorld(t)
	_, _ = w.client.CreateSandbox(w.ctx, "pod", nil)
	w.subscribe()
	c := w.run(testContainer{memory: 16 << 20, sandbox: "pod"}, `sleep 0.5; head -c 200000000 /dev/zero | tail; exit 3`)
	_, monitor := w.pids()
	w.kill(monitor)
	w.connect()
	w.subscribe()
	e := w.event(func(e Event) bool { return e.Container == c.ID && e.Kind == EventExited })
	if !e.Exit.OOMKilled || e.Exit.MemoryPeak < 8<<20 {
		t.Errorf("exit %+v", *e.Exit)
	}
	w.delete(c.ID)
	w.must(w.client.DeleteSandbox(w.ctx, "pod"))
	w.wantNothing()
}

// TestSandbox has a sandbox with a process, whose PID namespace a container shares. It exits before its other processes.
func TestSandbox(t *testing.T) {
	w := newWorld(t)
	pin := filepath.Join(w.base, "pid-namespace")
	pause := w.bundle(testContainer{}, "sleep 1000")
	pause.PinPID, pause.Output = pin, ""
	created, err := w.client.CreateSandbox(w.ctx, pause.ID, &pause)
	w.must(err)
	if created.Phase != Running {
		t.Errorf("process of the sandbox: %+v", created)
	}
	if _, err := w.client.CreateSandbox(w.ctx, pause.ID, &pause); !errdefs.IsAlreadyExists(err) {
		t.Errorf("create a sandbox twice: %v", err)
	}
	own, err := os.Stat(fmt.Sprintf("/proc/%d/ns/pid", created.PID))
	w.must(err)
	pinned, err := os.Stat(pin)
	w.must(err)
	if !os.SameFile(own, pinned) {
		t.Error("the PID namespace is not pinned")
	}
	c := w.run(testContainer{sandbox: pause.ID, hostPID: true}, `(trap "" TERM; while :; do sleep 0.1; done) & echo first; exit 7`)
	_, monitor := w.pids()
	w.kill(monitor)
	w.connect()
	_, sandboxes, err := w.client.List(w.ctx)
	w.must(err)
	if len(sandboxes) != 1 || sandboxes[0] != pause.ID {
		t.Errorf("sandboxes: %v", sandboxes)
	}
	if e := w.awaitExit(c.ID); e.Code != 7 {
		t.Errorf("exit %+v", e)
	}
	w.eventually("the other processes are killed", func() error {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroupParent + "/" + c.ID + "/cgroup.procs")
		for _, g := range groups {
			if text, _ := os.ReadFile(g); len(text) > 0 {
				return fmt.Errorf("%s has %q", g, text)
			}
		}
		return nil
	})
	if err := w.client.DeleteSandbox(w.ctx, pause.ID); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("delete a sandbox with a container: %v", err)
	}
	w.delete(c.ID)
	w.wantLog(c.ID, "first")
	w.must(w.client.DeleteSandbox(w.ctx, pause.ID))
	w.must(w.client.DeleteSandbox(w.ctx, pause.ID))
	w.wantNothing()
}

// TestLogLimits changes the limits of a log while its container writes.
func TestLogLimits(t *testing.T) {
	w := newWorld(t)
	r := w.bundle(testContainer{}, `while :; do seq 1 2000; sleep 0.05; done`)
	c, err := w.client.CreateAndStart(w.ctx, r)
	w.must(err)
	rotated := func(n int) error {
		if files, _ := filepath.Glob(w.logPath(c.ID) + "*"); len(files) < n {
			return fmt.Errorf("%d files", len(files))
		}
		return nil
	}
	w.eventually("it writes", func() error { return w.lines(c.ID, 10) })
	if rotated(2) == nil {
		t.Fatal("rotated before the limit")
	}
	changed := strings.Replace(r.Output, "?", "?max=20000&keep=3&", 1)
	if changed == r.Output {
		changed += "?max=20000&keep=3"
	}
	w.must(w.client.SetLog(w.ctx, c.ID, changed))
	w.eventually("the log is rotated", func() error { return rotated(3) })
	w.killAndDelete(c.ID)
	if err := w.client.SetLog(w.ctx, c.ID, changed); !errdefs.IsNotFound(err) {
		t.Errorf("change of the log of no container: %v", err)
	}
	w.wantNothing()
}

// TestBadStarts has containers that cannot be started: nothing of them is left.
func TestBadStarts(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(text string) string{
		"program": func(s string) string { return strings.Replace(s, "/bin/sh", "/bin/missing", 1) },
		"namespace": func(s string) string {
			return strings.Replace(s, `"type":"uts"`, `"type":"uts","path":"/nonexistent"`, 1)
		},
		"specification": func(s string) string { return s[:len(s)-1] },
	} {
		r := w.bundle(testContainer{}, "true")
		path := filepath.Join(r.Bundle, "config.json")
		text, err := os.ReadFile(path)
		w.must(err)
		w.must(os.WriteFile(path, []byte(change(string(text))), 0o600))
		if _, err := w.client.CreateAndStart(w.ctx, r); err == nil {
			t.Errorf("started a container with a bad %s", name)
		}
		w.removeBundles(r)
	}
	w.wantNothing()
}

// TestTerminate sends SIGTERM to keeper and monitor, as systemd does to a cgroup: they stop after the last container.
func TestTerminate(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{}, `while [ ! -e /tmp/stop ]; do sleep 0.05; done; echo last; exit 6`)
	if err := w.client.Shutdown(w.ctx); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("shutdown with a container: %v", err)
	}
	keeper, monitor := w.pids()
	for range 3 {
		for _, pid := range []int{keeper, monitor} {
			w.must(errors.Join(unix.Kill(pid, unix.SIGTERM), unix.Kill(pid, unix.SIGHUP), unix.Kill(pid, unix.SIGINT)))
		}
	}
	r := Run{Container: c.ID, Mark: "m-1-p", Process: w.processJSON("mkdir /tmp/stop", "m-1-p"), Timeout: patience}
	_, err := w.client.Run(w.ctx, r)
	w.must(err)
	w.eventually("they stop", func() error {
		if left := w.roles(); len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
	w.startKeeper()
	w.connect()
	// It has replaced none, so it does not report that.
	if hello, err := w.client.Hello(w.ctx); err != nil || hello.Monitors != 1 {
		t.Errorf("hello after a stop: %+v, %v; want one monitor", hello, err)
	}
	if e := w.awaitExit(c.ID); e.Code != 6 || e.Unknown {
		t.Errorf("exit %+v", e)
	}
	w.delete(c.ID)
	w.wantLog(c.ID, "last")
	w.wantNothing()

	// A second keeper does not start.
	second := w.keeper
	w.startKeeper()
	w.eventually("the second keeper exits", func() error {
		if processExists(w.keeper.Process.Pid) {
			return errors.New("it runs")
		}
		return nil
	})
	w.keeper = second
	w.must(w.client.Shutdown(w.ctx))
	w.eventually("they stop", func() error {
		if left := w.roles(); len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
}

func processExists(pid int) bool {
	s, err := proc.StatOf(pid)
	return err == nil && s.State != 'Z'
}
