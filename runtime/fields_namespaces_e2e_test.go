//go:build e2e

package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// namespaceOf returns the namespace of a process.
func (m *testHost) namespaceOf(pid any, kind string) string {
	m.Helper()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%v/ns/%s", pid, kind))
	if err != nil {
		m.Fatal(err)
	}
	return ns
}

// inCgroup returns the PIDs on the host of the processes in a container's cgroup.
func (p *pod) inCgroup(ref lifecycle.Ref) []string {
	p.Helper()
	for _, hierarchy := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		text, err := os.ReadFile(filepath.Join(hierarchy, p.cgroupOf(ref), "cgroup.procs"))
		if err == nil {
			return strings.Fields(string(text))
		}
	}
	return nil
}

// wantNoProcess waits until all processes of an exited container have exited.
func (p *pod) wantNoProcess(ref lifecycle.Ref) {
	p.Helper()
	p.eventually("the exit of a container's children", func() (string, bool) {
		left := p.inCgroup(ref)
		return fmt.Sprint(left), len(left) == 0
	})
}

// exitingContainers are two containers. The first exits and leaves children; one of them has another parent, session and environment, and
// holds the log open. The second runs until it is stopped.
const exitingContainers = `
[[containers]]
name = "leaves"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "env -i setsid sh -c 'while :; do sleep 1; done' & sleep 100000 & echo started; exit 3"]

[[containers]]
name = "stays"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"]
`

const hostFile = `
name = "host"
hostPID = true
hostIPC = true

[[containers]]
name = "look"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	readlink /proc/self/ns/pid; readlink /proc/self/ns/ipc
	cat /proc/%d/comm
	cat /dev/shm/%[2]s; echo from the container > /dev/shm/%[2]s
	[ -e /dev/mqueue/%[2]s ] && echo queue''']
` + exitingContainers

// TestFieldsHostPIDAndIPC tests a pod in the namespaces of the host. Processes that a container leaves there are killed.
//
// fields: hostPID, hostIPC
func TestFieldsHostPIDAndIPC(t *testing.T) {
	m := newTestHost(t)
	name := filepath.Base(m.dir)
	m.createQueue(name)
	shared := filepath.Join("/dev/shm", name)
	if err := os.WriteFile(shared, []byte("from the host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(shared) })
	p := newPod(m, m.parse(fmt.Sprintf(hostFile, os.Getpid(), name)))

	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, p.run("look"), m.namespaceOf("self", "pid"), m.namespaceOf("self", "ipc"),
		strings.TrimSpace(string(comm)), "from the host", "queue")
	if text, err := os.ReadFile(shared); string(text) != "from the container\n" {
		t.Errorf("shared memory of the host: %q, %v", text, err)
	}
	p.exitsWithChildren("leaves")
	p.stopAndKill("stays")
}

// exitsWithChildren runs a container that leaves children. They are killed, and neither the exit nor the log waits for them. The container
// may exit before StartContainer returns.
func (p *pod) exitsWithChildren(name string) {
	p.Helper()
	for attempt := 1; attempt <= 5; attempt++ {
		ref := lifecycle.Ref{Container: name, Round: 1, Attempt: attempt}
		p.exitWithChildren(lifecycle.StartContainer{Ref: ref, Sandbox: 1})
		if err := p.RemoveContainer(p.ctx(), uid, p.Pod, ref); err != nil {
			p.Error(err)
		}
	}
}

func (p *pod) exitWithChildren(a lifecycle.StartContainer) {
	p.Helper()
	name, ref := a.Container, a.Ref
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, a); err != nil {
		p.Fatal(err)
	}
	if exit := p.wait(ref); exit.Code != 3 || exit.Reason != lifecycle.ReasonError {
		p.Errorf("%s: exit %+v, want code 3", name, exit)
	}
	p.wantNoProcess(ref)
	if log := p.log(ref); log != "started\n" {
		p.Errorf("%s: log %q", name, log)
	}
}

// stopAndKill stops a container, which exits with 5, and kills a second run of it and its children.
func (p *pod) stopAndKill(name string) {
	p.Helper()
	ref := p.serve(name)
	if err := p.StopContainer(p.ctx(), uid, p.Pod, ref); err != nil {
		p.Fatal(err)
	}
	if exit := p.wait(ref); exit.Code != 5 {
		p.Errorf("%s: exit after stop: %+v, want code 5", name, exit)
	}
	again := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: name, Round: 1, Attempt: 2}, Sandbox: 1, Restarts: 1}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, again); err != nil {
		p.Fatal(err)
	}
	// A command that exceeds its timeout is killed with its children, and nothing else.
	if _, out, err := p.exec(again.Ref, 200*time.Millisecond, "setsid sleep 100000 & sleep 100000"); err == nil {
		p.Errorf("%s: command without end: no error, output %q", name, out)
	}
	p.eventually("the exit of the command", func() (string, bool) {
		running := p.running()
		return fmt.Sprintf("%q", running), !slices.ContainsFunc(running, func(l string) bool { return strings.Contains(l, "100000") })
	})
	if code, out, err := p.exec(again.Ref, 0, "setsid sleep 100000 >/dev/null 2>&1 & echo left"); code != 0 || out != "left\n" ||
		err != nil {
		p.Errorf("%s: command that leaves a child: %d, %q, %v", name, code, out, err)
	}
	if err := p.KillContainer(p.ctx(), uid, again.Ref); err != nil {
		p.Fatal(err)
	}
	if exit := p.wait(again.Ref); exit.Code != 137 {
		p.Errorf("%s: exit after kill: %+v, want code 137", name, exit)
	}
	p.wantNoProcess(again.Ref)
}

// createQueue creates a POSIX message queue in the IPC namespace of the host.
func (m *testHost) createQueue(name string) {
	m.Helper()
	dir := m.TempDir()
	if err := unix.Mount("mqueue", dir, "mqueue", 0, ""); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		if err := errors.Join(os.Remove(filepath.Join(dir, name)), unix.Unmount(dir, 0)); err != nil {
			m.Error(err)
		}
	})
	f, err := os.Create(filepath.Join(dir, name))
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		m.Fatal(err)
	}
}

const sharedFile = `
name = "shared"
shareProcessNamespace = true

[[containers]]
name = "first"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo ready; exec sleep 98765"] # exec: the shell must not be a second match

[[containers]]
name = "look"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	tr '\0' ' ' < /proc/1/cmdline; echo
	ps | grep -c '[s]leep 98765'
	sh -c 'sleep 100000 & echo "$!" > /orphan' # its parent has exited
	awk '$1 == "PPid:" { print "orphan of " $2 }' /proc/$(cat /orphan)/status
	kill $(cat /orphan)
	until ! [ -e /proc/$(cat /orphan) ]; do sleep 0.05; done; echo reaped
	ls /proc/1/root/ 2>/dev/null; cat /proc/1/environ 2>/dev/null; readlink /proc/1/exe
	grep -E '^(Uid|CapBnd|NoNewPrivs|Seccomp):' /proc/1/status | tr '\t' ' '
	readlink /proc/self/ns/pid''']

[[containers]]
name = "signals"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "exec 2> /dev/null; kill -TERM 1; kill -KILL 1; sleep 0.3; echo still here"] # AppArmor denies both
` + exitingContainers

// TestFieldsShareProcessNamespace tests that containers of a pod see each other's processes. The first process of the namespace reaps
// orphans, has no privileges, and cannot be killed by a container.
//
// fields: shareProcessNamespace
func TestFieldsShareProcessNamespace(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(sharedFile))
	first := p.serve("first")
	wantLines(t, p.run("look"), "/pause ", "1", "orphan of 1", "reaped",
		"Uid: 65535 65535 65535 65535", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2",
		m.namespaceOf(m.pidOf(first), "pid"))
	p.exitsWithChildren("leaves")
	p.stopAndKill("stays")
	wantLines(t, p.run("signals"), "still here")
	if code, out, err := p.exec(first, 0, "echo here"); code != 0 || err != nil {
		t.Errorf("in the other container: %d, %q, %v", code, out, err)
	}
}

// pausePid returns the PID of the only pause process of this host.
func (m *testHost) pausePid() int {
	m.Helper()
	for pid, cmdline := range m.processes() {
		if cmdline == "/pause\x00" {
			return pid
		}
	}
	m.Fatalf("no pause process in %v", m.processes())
	return 0
}

// When the pause process is killed, the sandbox is lost: its containers exit, nothing of them is left, and a new sandbox can be started.
func TestPauseKilled(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{ShareProcessNamespace: true})
	ref, err := p.start(sh("setsid sleep 100000 & sleep 100000"))
	if err != nil {
		t.Fatal(err)
	}
	p.losesSandbox(ref, m.pausePid())
}

// The next daemon detects that the pause process was killed while no daemon was running.
func TestPauseKilledWithoutDaemon(t *testing.T) {
	for _, victim := range []string{"pause", "none"} {
		t.Run(victim, func(t *testing.T) {
			m := newTestHost(t)
			p := newPod(m, &spec.Pod{ShareProcessNamespace: true})
			ref, err := p.start(sh("sleep 100000"))
			if err != nil {
				t.Fatal(err)
			}
			pause := m.pausePid()
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if victim != "none" {
				if err := unix.Kill(pause, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				m.eventually("the exit of the pause process", func() (string, bool) {
					err := unix.Kill(pause, 0)
					return fmt.Sprint(err), err != nil
				})
			}
			m.start()
			found, err := m.Inventory(m.ctx())
			if err != nil || len(found) != 1 || found[0].Ready != (victim == "none") {
				t.Fatalf("inventory: %+v, %v", found, err)
			}
			if victim == "none" {
				if code, out, err := p.exec(ref, 0, "[ -e /proc/1 ] && echo alive"); code != 0 || out != "alive\n" {
					t.Errorf("%d, %q, %v", code, out, err)
				}
				return
			}
			if exit := p.wait(ref); exit.Code != 137 {
				t.Errorf("exit: %+v, want 137", exit)
			}
		})
	}
}

// The pause process exits on SIGTERM when no container needs it.
func TestPauseTerminates(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{ShareProcessNamespace: true})
	ref, err := p.start(sh("trap 'sleep 0.5; exit 5' TERM; echo ready; while :; do sleep 0.05; done"))
	if err != nil {
		t.Fatal(err)
	}
	p.eventually("the container to be ready", func() (string, bool) { log := p.log(ref); return log, log == "ready\n" })
	lost := make(chan error, 1)
	ctx := p.ctx()
	go func() { _, err := p.WaitSandbox(ctx, uid, p.Pod, 1); lost <- err }()
	for _, pid := range []int{m.pausePid(), m.pidOf(ref)} {
		if err := unix.Kill(pid, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if exit := p.wait(ref); exit.Code != 5 {
		t.Errorf("exit: %+v, want code 5 of the container", exit)
	}
	if err := <-lost; err != nil {
		t.Errorf("wait for the sandbox: %v", err)
	}
}

// A debug container joins the process namespace of its target, which must be running.
func TestTargetContainer(t *testing.T) {
	p, ref := execPod(t)
	look := spec.Container{TargetContainerName: ref.Container, Command: []string{"sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline"}}
	if got := p.output(look); strings.TrimSpace(got) != "sleep 100000" {
		t.Errorf("the first process is %q", got)
	}
	if err := p.KillContainer(p.ctx(), uid, ref); err != nil {
		t.Fatal(err)
	}
	p.wait(ref)
	if _, err := p.start(look); err == nil || !strings.Contains(err.Error(), "is not running") {
		t.Errorf("the target has exited: %v", err)
	}
}
