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

// namespaceOf is the namespace of a kind that a process is in.
func (m *machine) namespaceOf(pid any, kind string) string {
	m.Helper()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%v/ns/%s", pid, kind))
	if err != nil {
		m.Fatal(err)
	}
	return ns
}

// inCgroup lists the processes that a container's cgroup holds, by number: what runs there whatever a container can see.
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

// wantNobody wants all processes of a container to end, and soon: it has ended itself.
func (p *pod) wantNobody(ref lifecycle.Ref) {
	p.Helper()
	p.eventually("the end of a container's children", func() (string, bool) {
		left := p.inCgroup(ref)
		return fmt.Sprint(left), len(left) == 0
	})
}

// endings are two containers. One ends and leaves children, of which one has got rid of its parent, its session and its environment
// and holds the log open; the other stays until it is told to end.
const endings = `
[[containers]]
name = "leaves"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "env -i setsid sh -c 'while :; do sleep 1; done' & sleep 100000 & echo begun; exit 3"]

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
` + endings

// TestFieldsHostPIDAndIPC: a pod in the machine's own namespaces. What a container leaves behind there ends with it.
//
// fields: hostPID, hostIPC
func TestFieldsHostPIDAndIPC(t *testing.T) {
	m := newMachine(t)
	name := filepath.Base(m.dir)
	m.makeQueue(name)
	shared := filepath.Join("/dev/shm", name)
	if err := os.WriteFile(shared, []byte("from the machine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(shared) })
	p := newPod(m, m.parse(fmt.Sprintf(hostFile, os.Getpid(), name)))

	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, p.run("look"), m.namespaceOf("self", "pid"), m.namespaceOf("self", "ipc"),
		strings.TrimSpace(string(comm)), "from the machine", "queue")
	if text, err := os.ReadFile(shared); string(text) != "from the container\n" {
		t.Errorf("in the machine's shared memory: %q, %v", text, err)
	}
	p.endsWithChildren("leaves")
	p.stopsAndIsKilled("stays")
}

// endsWithChildren runs a container that leaves children: they end with it, and neither its end nor its log waits for them. It
// is over within milliseconds, which may be before its start is.
func (p *pod) endsWithChildren(name string) {
	p.Helper()
	for attempt := 1; attempt <= 5; attempt++ {
		ref := lifecycle.Ref{Container: name, Round: 1, Attempt: attempt}
		p.endsWithChildrenOnce(lifecycle.StartContainer{Ref: ref, Sandbox: 1})
		if err := p.RemoveContainer(p.ctx(), uid, p.Pod, ref); err != nil {
			p.Error(err)
		}
	}
}

func (p *pod) endsWithChildrenOnce(a lifecycle.StartContainer) {
	p.Helper()
	name, ref := a.Container, a.Ref
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, a); err != nil {
		p.Fatal(err)
	}
	if exit := p.wait(ref); exit.Code != 3 || exit.Reason != lifecycle.ReasonError {
		p.Errorf("%s: it ended with %+v, want 3", name, exit)
	}
	p.wantNobody(ref)
	if log := p.log(ref); log != "begun\n" {
		p.Errorf("%s: log %q", name, log)
	}
}

// stopsAndIsKilled stops a container that exits with 5 then, and kills a second run of it with what it has started.
func (p *pod) stopsAndIsKilled(name string) {
	p.Helper()
	ref := p.serve(name)
	if err := p.StopContainer(p.ctx(), uid, p.Pod, ref); err != nil {
		p.Fatal(err)
	}
	if exit := p.wait(ref); exit.Code != 5 {
		p.Errorf("%s: stopped, it ended with %+v, want 5", name, exit)
	}
	again := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: name, Round: 1, Attempt: 2}, Sandbox: 1, Restarts: 1}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, again); err != nil {
		p.Fatal(err)
	}
	// A command that outlasts its time ends, with all that it has started, and nothing else does.
	if _, out, err := p.exec(again.Ref, 200*time.Millisecond, "setsid sleep 100000 & sleep 100000"); err == nil {
		p.Errorf("%s: a command that never ends: %q", name, out)
	}
	p.eventually("the end of the command", func() (string, bool) {
		living := p.living()
		return fmt.Sprintf("%q", living), !slices.ContainsFunc(living, func(l string) bool { return strings.Contains(l, "100000") })
	})
	if code, out, err := p.exec(again.Ref, 0, "setsid sleep 100000 >/dev/null 2>&1 & echo left"); code != 0 || out != "left\n" || err != nil {
		p.Errorf("%s: a command that leaves a child: %d, %q, %v", name, code, out, err)
	}
	if err := p.KillContainer(p.ctx(), uid, again.Ref); err != nil {
		p.Fatal(err)
	}
	if exit := p.wait(again.Ref); exit.Code != 137 {
		p.Errorf("%s: killed, it ended with %+v, want 137", name, exit)
	}
	p.wantNobody(again.Ref)
}

// makeQueue makes a POSIX message queue in the machine's IPC namespace.
func (m *machine) makeQueue(name string) {
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
command = ["sh", "-c", "echo ready; exec sleep 98765"] # which has no child that looks as it does for a moment

[[containers]]
name = "look"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	tr '\0' ' ' < /proc/1/cmdline; echo
	ps | grep -c '[s]leep 98765'
	sh -c 'sleep 100000 & echo "$!" > /orphan' # whose parent has ended
	awk '$1 == "PPid:" { print "orphan of " $2 }' /proc/$(cat /orphan)/status
	kill $(cat /orphan)
	until ! [ -e /proc/$(cat /orphan) ]; do sleep 0.05; done; echo reaped
	ls /proc/1/root/ 2>/dev/null; cat /proc/1/environ 2>/dev/null; readlink /proc/1/exe
	grep -E '^(Uid|CapBnd|NoNewPrivs|Seccomp):' /proc/1/status | tr '\t' ' '
	readlink /proc/self/ns/pid''']

[[containers]]
name = "curious"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "exec 2> /dev/null; kill -TERM 1; kill -KILL 1; sleep 0.3; echo still here"] # AppArmor refuses both
` + endings

// TestFieldsShareProcessNamespace: the containers of a pod see each other's processes. The first process is ours: it takes care
// of orphans, has nothing to be taken from it, and ends for nobody inside.
//
// fields: shareProcessNamespace
func TestFieldsShareProcessNamespace(t *testing.T) {
	m := newMachine(t)
	p := newPod(m, m.parse(sharedFile))
	first := p.serve("first")
	wantLines(t, p.run("look"), "/pause ", "1", "orphan of 1", "reaped",
		"Uid: 65535 65535 65535 65535", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2",
		m.namespaceOf(m.pidOf(first), "pid"))
	p.endsWithChildren("leaves")
	p.stopsAndIsKilled("stays")
	wantLines(t, p.run("curious"), "still here")
	if code, out, err := p.exec(first, 0, "echo here"); code != 0 || err != nil {
		t.Errorf("in the container beside it all: %d, %q, %v", code, out, err)
	}
}

// pausePid finds the pause of the one pod of this machine.
func (m *machine) pausePid() int {
	m.Helper()
	for pid, cmdline := range m.processes() {
		if cmdline == "/pause\x00" {
			return pid
		}
	}
	m.Fatalf("there is no pause among %v", m.processes())
	return 0
}

// The end of the pause is the end of the sandbox: its containers are told, nothing of them is left, and another sandbox can follow.
func TestPauseKilled(t *testing.T) {
	for _, victim := range []string{"pause", "shim"} {
		t.Run(victim, func(t *testing.T) {
			m := newMachine(t)
			p := newPod(m, &spec.Pod{ShareProcessNamespace: true})
			ref, err := p.start(sh("setsid sleep 100000 & sleep 100000"))
			if err != nil {
				t.Fatal(err)
			}
			p.losesSandbox(ref, map[string]func() int{"pause": m.pausePid, "shim": m.shimPid}[victim]())
		})
	}
}

// What dies while no daemon is there is found by the next one.
func TestPauseKilledWhileAway(t *testing.T) {
	for _, victim := range []string{"pause", "shim", "nobody"} {
		t.Run(victim, func(t *testing.T) {
			m := newMachine(t)
			p := newPod(m, &spec.Pod{ShareProcessNamespace: true})
			ref, err := p.start(sh("sleep 100000"))
			if err != nil {
				t.Fatal(err)
			}
			pause, shim := m.pausePid(), m.shimPid()
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if victim != "nobody" {
				err := unix.Kill(map[string]int{"pause": pause, "shim": shim}[victim], unix.SIGKILL)
				if err != nil {
					t.Fatal(err)
				}
				m.eventually("the end of the shim", func() (string, bool) {
					err := unix.Kill(shim, 0)
					return fmt.Sprint(err), err != nil
				})
			}
			m.start()
			found, err := m.Inventory(m.ctx())
			if err != nil || len(found) != 1 || found[0].Ready != (victim == "nobody") {
				t.Fatalf("inventory: %+v, %v", found, err)
			}
			if victim == "nobody" {
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

// A pause ends by SIGTERM when nobody is left that needs it.
func TestPauseEnds(t *testing.T) {
	m := newMachine(t)
	p := newPod(m, &spec.Pod{ShareProcessNamespace: true})
	ref, err := p.start(sh("trap 'sleep 0.5; exit 5' TERM; echo ready; while :; do sleep 0.05; done"))
	if err != nil {
		t.Fatal(err)
	}
	p.eventually("it is ready", func() (string, bool) { log := p.log(ref); return log, log == "ready\n" })
	lost := make(chan error, 1)
	ctx := p.ctx()
	go func() { _, err := p.WaitSandbox(ctx, uid, p.Pod, 1); lost <- err }()
	for _, pid := range []int{m.pausePid(), m.pidOf(ref)} {
		if err := unix.Kill(pid, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if exit := p.wait(ref); exit.Code != 5 {
		t.Errorf("exit: %+v, want the container's own, 5", exit)
	}
	if err := <-lost; err != nil {
		t.Errorf("wait for the sandbox: %v", err)
	}
}
