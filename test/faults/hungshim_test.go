//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// trapped is a pod whose container restarts when it gets SIGUSR1. Its probe needs the shim.
var trapped = "terminationGracePeriodSeconds = 1\n" +
	container("c", "trap 'exit 3' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done") +
	"livenessProbe = { exec = { command = [\"true\"] }, periodSeconds = 1, timeoutSeconds = 20 }\n"

// startTimeout is the time for a daemon to start beside a shim that does not respond. It was two minutes and more when the daemon waited
// for the shim.
const startTimeout = 45 * time.Second

// create runs pods without a client.
func (f *fixture) create(names ...string) {
	f.Helper()
	f.MustRun("get") // starts the daemon
	for _, name := range names {
		f.MustCreate(name, trapped)
	}
	for _, name := range names {
		f.Until(name, "ready", ready)
	}
}

func ready(p *api.Pod) bool {
	list := p.Status.ContainerStatuses
	return len(list) > 0 && list[0].Ready
}

// freeze stops the process that holds the containers of a pod in its first sandbox with SIGSTOP: its shim, or the monitor.
func (f *fixture) freeze(name string) (pid int) {
	f.Helper()
	p, err := f.HolderOf(f.get(name).Metadata.UID, 1)
	f.Check(err)
	pid = p.PID
	f.Check(unix.Kill(pid, unix.SIGSTOP))
	f.Cleanup(func() { _ = unix.Kill(pid, unix.SIGCONT) }) // it may have exited
	return pid
}

// responds reports whether a pod lacks the condition of a shim that does not respond.
func responds(p *api.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == api.MonitorUnresponsive && c.Status == "True" {
			return false
		}
	}
	return true
}

func unresponsive(p *api.Pod) bool { return !responds(p) }

// expectReport waits until a pod reports that its shim does not respond: by its condition, by one event and by why.
func (f *fixture) expectReport(name string) {
	f.Helper()
	p := f.Until(name, "reported as unresponsive", unresponsive)
	if p.Status.Phase == "" {
		f.Errorf("pod %s has no phase", name)
	}
	const message = "does not respond"
	if events := f.MustRun("events", name); strings.Count(events, message) != 1 {
		f.Errorf("events of %s, want one with %q:\n%s", name, message, events)
	}
	if events := f.MustRun("events", name); strings.Contains(events, "errored") {
		f.Errorf("a probe reports an error while the shim does not respond:\n%s", events)
	}
	if why := f.MustRun("why", name); !strings.Contains(why, message) {
		f.Errorf("why %s does not contain %q:\n%s", name, message, why)
	}
}

// restart makes the container of a pod exit, and waits for its restart.
func (f *fixture) restart(name string, restarts int) {
	f.Helper()
	f.signalContainer(name, unix.SIGUSR1)
	f.Until(name, fmt.Sprintf("running after %d restarts", restarts), func(p *api.Pod) bool {
		c := p.Status.ContainerStatuses[0]
		return c.RestartCount == restarts && c.State.Running != nil
	})
}

// signalContainer sends a signal to the shell in the container of a pod.
func (f *fixture) signalContainer(name string, sig unix.Signal) {
	f.Helper()
	f.signal(f.containerPID(name), sig)
}

// containerPID returns the process of the shell in the container of a pod. What the shell starts has the same command line at first, and
// gets signals that are lost: it is not PID 1 of the container.
func (f *fixture) containerPID(name string) (pid int) {
	f.Helper()
	uid := f.get(name).Metadata.UID
	f.Await(func() error {
		all, err := f.processes("trap")
		if err != nil {
			return err
		}
		for _, p := range all {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p))
			if err == nil && strings.Contains(string(text), uid) && isInit(p) {
				pid = p
				return nil
			}
		}
		return errors.New("no process of pod " + name)
	})
	return pid
}

// isInit reports whether a process is PID 1 of its PID namespace.
func isInit(pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have exited
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "NSpid:") {
			fields := strings.Fields(line)
			return fields[len(fields)-1] == "1"
		}
	}
	return false
}

// restartDaemon kills the daemon and starts the next one.
func (f *fixture) restartDaemon() {
	f.Helper()
	f.MustKillDaemon()
	started := time.Now()
	f.MustRun("get")
	if took := time.Since(started); took > startTimeout {
		f.Errorf("the daemon was ready after %v, want at most %v", took, startTimeout)
	}
}

// TestHungShimBesideNewDaemon: a daemon that starts beside a shim that does not respond supervises the other pods at once, and this one
// when its shim responds.
func TestHungShimBesideNewDaemon(t *testing.T) {
	f := newFixture(t)
	f.create("hung", "other")
	was, pid := f.running("hung"), f.containerPID("hung")
	shim := f.freeze("hung")
	f.restartDaemon()
	f.restart("other", 1)
	f.expectReport("hung")
	f.restartDaemon() // which must not lose what the daemon before has set aside
	if err := unix.Kill(shim, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.Until("hung", "responding", responds)
	if diff := cmp.Diff(was, f.running("hung")); diff != "" || f.containerPID("hung") != pid {
		t.Errorf("the container has process %d, had %d: %s", f.containerPID("hung"), pid, diff)
	}
	f.restart("hung", 1)
	f.restartDaemon()
	f.restart("hung", 2)
	f.MustRun("delete", "hung", "other")
}

// TestContainerExitsBesideHungShim: the exit of a container while neither its shim nor a daemon takes notice is found when both do.
func TestContainerExitsBesideHungShim(t *testing.T) {
	f := newFixture(t)
	f.create("hung")
	shim := f.freeze("hung")
	f.restartDaemon()
	f.signalContainer("hung", unix.SIGUSR1)
	f.Until("hung", "reported as unresponsive", unresponsive)
	if err := unix.Kill(shim, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p := f.Until("hung", "running after a restart", func(p *api.Pod) bool {
		c := p.Status.ContainerStatuses[0]
		return c.RestartCount == 1 && c.State.Running != nil
	})
	if last := p.Status.ContainerStatuses[0].LastState.Terminated; last == nil || last.ExitCode != 3 {
		t.Errorf("last termination %+v, want exit code 3", last)
	}
	f.MustRun("delete", "hung")
}

// TestForceHungShim: a pod whose shim does not respond can be deleted by force, both beside the daemon that started it and beside the next
// one. Nothing is left.
func TestForceHungShim(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			f := newFixture(t)
			f.create("hung", "other")
			shim, pid := f.freeze("hung"), f.containerPID("hung")
			if restarted {
				f.restartDaemon()
			} else {
				f.expectReport("hung")
			}
			f.MustRun("delete", "--force", "hung")
			for _, process := range []int{shim, pid} {
				f.Await(func() error {
					if rig.IsAlive(process) {
						return fmt.Errorf("process %d runs", process)
					}
					return nil
				})
			}
			f.restart("other", 1)
			f.MustRun("delete", "other")
		})
	}
}

// TestHungShimOfRunningDaemon: a shim that stops responding beside its daemon is reported, and so is that it responds again.
func TestHungShimOfRunningDaemon(t *testing.T) {
	f := newFixture(t)
	f.create("hung")
	was := f.running("hung")
	shim := f.freeze("hung")
	f.expectReport("hung")
	if err := unix.Kill(shim, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.Until("hung", "responding", responds)
	if diff := cmp.Diff(was, f.running("hung")); diff != "" {
		t.Errorf("the pod changed: %s", diff)
	}
	f.restart("hung", 1)
	f.MustRun("delete", "hung")
}
