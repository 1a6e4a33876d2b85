//go:build e2e

package runtime_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

const limitsFile = `
pidsLimit = 77
shmSize = "3Mi"

[[containers]]
name = "limited"
image = "localhost/podstead/busybox:1"
ulimits = ["nofile=123:456", { name = "core", soft = 512 }, "stack=-1"]
command = ["sh", "-c", "cat /proc/self/limits; grep '/dev/shm' /proc/mounts; echo ready; exec sleep 100000"]

[[containers]]
name = "plain"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", """
head -c 3145728 /dev/zero > /dev/shm/full && echo fits
echo x >> /dev/shm/full || echo full
echo ready
exec sleep 100000"""]
`

// TestFieldsLimits tests the limits of processes, of a pod and of a container, and the size of /dev/shm.
//
// fields: pidsLimit, shmSize, containers[].ulimits[].{name,soft,hard}
func TestFieldsLimits(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(limitsFile))
	if err := m.Admit(p.Pod); err != nil {
		m.Fatal(err)
	}
	limited, plain := p.serve("limited"), p.serve("plain")
	log := strings.Join(strings.Fields(p.log(limited)), " ")
	for _, want := range []string{
		"Max open files 123 456 files", "Max core file size 512 512 bytes", "Max stack size unlimited unlimited bytes", "size=3072k",
	} {
		if !strings.Contains(log, want) {
			m.Errorf("no %q in %s", want, log)
		}
	}
	// A command in the container has the same limits. runc before 1.1.13 sometimes sets another nofile for it (runc#4195).
	if _, out, err := p.exec(limited, time.Minute, "grep core /proc/self/limits"); err != nil ||
		strings.Join(strings.Fields(out), " ") != "Max core file size 512 512 bytes" {
		m.Errorf("limits of a command: %q, %v", out, err)
	}
	if log := p.log(plain); !strings.HasPrefix(log, "fits\n") || !strings.Contains(log, "full\n") {
		m.Errorf("output of the container that fills /dev/shm: %q", log)
	}
	if g := p.groups(limited); !strings.HasSuffix(g.limits(true), " pids 77") {
		m.Errorf("limits of the pod: %s", g.limits(true))
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		m.Fatal(err)
	}
	refused := m.Admit(m.parse(strings.Replace(limitsFile, "123:456", "1:2000000000", 1)))
	if refused == nil || !strings.Contains(refused.Error(), "nofile 2000000000: the kernel allows at most") {
		m.Errorf("more files than the kernel allows: %v", refused)
	}
}

const initFile = `
terminationGracePeriodSeconds = 60

[[containers]]
name = "reaps"
image = "localhost/podstead/busybox:1"
init = true
securityContext = { %s }
command = ["sh", "-c", """
for i in 1 2 3 4 5; do (until test -e /dev/shm/go; do sleep 0.1; done &); done
trap 'echo stopped; exit 7' TERM
echo ready
while :; do sleep 1; done"""]

[[containers]]
name = "none"
image = "localhost/podstead/busybox:1"
init = true
command = ["no-such-program"]

[[containers]]
name = "piles"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", """
for i in 1 2 3 4 5; do (until test -e /dev/shm/go; do sleep 0.1; done &); done
echo ready
exec sleep 100000"""]
`

// TestFieldsInit tests the init process of a container: it is the first process, reaps orphaned processes, forwards the stop signal, and
// exits as the command does.
//
// fields: containers[].init
func TestFieldsInit(t *testing.T) {
	m := newTestHost(t)
	for _, context := range []string{"", "readOnlyRootFilesystem = true, runAsUser = 1000, allowPrivilegeEscalation = false"} {
		p := newPod(m, m.parse(fmt.Sprintf(initFile, context)))
		reaps := p.serve("reaps")
		const look = "cat /proc/1/comm; echo x 2>&1 > /dev/podstead-init"
		if _, out, err := p.exec(reaps, time.Minute, look); err != nil || !strings.HasPrefix(out, "podstead-init\n") ||
			!strings.Contains(out, "can't create /dev/podstead-init") {
			m.Errorf("first process: %q, %v", out, err)
		}
		piles := p.serve("piles") // its first process reaps nothing
		p.eventually("the first process without an init process", func() (string, bool) {
			_, out, err := p.exec(piles, time.Minute, "cat /proc/1/comm")
			return fmt.Sprint(out, err), out == "sleep\n"
		})
		if code, out, err := p.exec(piles, time.Minute, "echo > /dev/shm/go"); code != 0 || err != nil {
			m.Fatal(code, out, err)
		}
		p.eventually("zombies without an init process", func() (string, bool) { n := p.zombies(piles); return n, n == "5" })
		p.eventually("no process but the command", func() (string, bool) {
			_, out, err := p.exec(reaps, time.Minute, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c '(sh) [^Z]'")
			return fmt.Sprint(out, err), out == "2\n" // with this one
		})
		p.eventually("no zombie", func() (string, bool) { n := p.zombies(reaps); return n, n == "0" })
		none, err := p.begin("none")
		if err != nil {
			m.Fatal(err)
		}
		const missing = "podstead-init: executable file not found in $PATH\n" // without the name, which may be a secret
		if exit, log := p.wait(none), p.log(none); exit.Code != 127 || log != missing {
			m.Errorf("missing program: %+v, %q", exit, log)
		}
		if err := m.StopContainer(m.ctx(), uid, p.Pod, reaps); err != nil {
			m.Fatal(err)
		}
		if exit, log := p.wait(reaps), p.log(reaps); exit.Code != 7 || !strings.Contains(log, "stopped\n") {
			m.Errorf("after the stop signal: %+v, %q", exit, log)
		}
		if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
			m.Fatal(err)
		}
	}
}

// zombies returns how many processes of a container have exited and were not reaped.
func (p *pod) zombies(ref lifecycle.Ref) string {
	p.Helper()
	_, out, err := p.exec(ref, time.Minute, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '")
	if err != nil {
		p.Fatal(err)
	}
	return strings.TrimSpace(out)
}
