//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// trapped is a pod whose container restarts when it gets SIGUSR1. Its probe needs the monitor.
var trapped = "terminationGracePeriodSeconds = 1\n" +
	container("c", "trap 'exit 3' USR1; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done") +
	"livenessProbe = { exec = { command = [\"true\"] }, periodSeconds = 1, timeoutSeconds = 20 }\n"

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

// freeze stops the monitor with SIGSTOP.
func (f *fixture) freeze() (pid int) {
	f.Helper()
	pid = f.holder()
	f.Check(unix.Kill(pid, unix.SIGSTOP))
	f.Cleanup(func() { _ = unix.Kill(pid, unix.SIGCONT) }) // it may have exited
	return pid
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
