//go:build e2e

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// TestDaemonKilledBesideRunningPod: without a daemon containers keep running and their output is kept. The next daemon recovers them
// unchanged.
func TestDaemonKilledBesideRunningPod(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("count", "terminationGracePeriodSeconds = 0\n"+container("counter", counting)))
	r.line("counter", 10)
	counter, holder, was := f.process("while :"), f.holder(), f.running("count")
	for range 2 { // the client gives up at the third daemon that exits soon after its start
		before := len(r.lines("counter"))
		f.MustKillDaemon()
		if diff := cmp.Diff(was, f.running("count")); diff != "" {
			t.Errorf("the pod changed after the daemon was killed: %s", diff)
		}
		r.line("counter", before+50)
	}
	if got := f.process("while :"); got != counter {
		t.Errorf("PID of the container was %d, is %d", counter, got)
	}
	if got := f.holder(); got != holder {
		t.Errorf("the process that holds the containers was %d, is %d", holder, got)
	}
	r.interrupt()
	if code := r.exitCode(); code != 1 { // it was killed
		t.Errorf("exit code %d, want 1", code)
	}
	checkNumbers(t, r.lines("counter"))
	for _, e := range r.events(api.EventContainerStarted) {
		if e.Attempt != 1 {
			t.Errorf("the container restarted: %+v", e)
		}
	}
}

// TestDaemonKilledAfterExit: a container that exits while no daemon runs is found with its exit code and its output.
func TestDaemonKilledAfterExit(t *testing.T) {
	f := newFixture(t)
	gate := filepath.Join(f.Dir, "gate")
	f.Check(os.Mkdir(gate, 0o755))
	file := f.PodFile("exits",
		"restartPolicy = \"Never\"\n"+container("ender", "echo up; until [ -e /gate/open ]; do sleep 0.01; done; echo bye; exit 7")+
			fmt.Sprintf("volumeMounts = { gate = \"/gate\" }\n[[volumes]]\nname = \"gate\"\nhostPath = { path = %q }\n", gate))
	r := f.start("--rm=false", file)
	r.line("ender", 1)
	ender := f.process("until [")
	// The client would start the next daemon.
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	f.MustKillDaemon()
	if err := os.WriteFile(filepath.Join(gate, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.Await(func() error {
		if rig.IsAlive(ender) {
			return fmt.Errorf("process %d is still running", ender)
		}
		return nil
	})
	f.Await(func() error {
		p := f.get("exits")
		ended := p.Status.ContainerStatuses[0].State.Terminated
		if p.Status.Phase != api.PhaseFailed || ended == nil || ended.ExitCode != 7 {
			return fmt.Errorf("phase %s, state %+v, want Failed with exit code 7", p.Status.Phase, p.Status.ContainerStatuses[0].State)
		}
		return nil
	})
	if got := f.MustRun("logs", "exits"); got != "up\nbye\n" {
		t.Errorf("log %q", got)
	}
	f.MustRun("delete", "exits")
}

// TestDaemonKilledDuringStart: a daemon that is killed while it starts or recovers a pod does not prevent the next one from starting.
func TestDaemonKilledDuringStart(t *testing.T) {
	f := newFixture(t)
	r := f.start("--rm=false", f.PodFile("count", "terminationGracePeriodSeconds = 0\n"+container("counter", counting)))
	r.line("counter", 1)
	if err := r.cmd.Process.Kill(); err != nil { // the client would start daemons of its own
		t.Fatal(err)
	}
	was, counter := f.running("count"), f.process("while :")
	f.MustKillDaemon()
	for i := range 25 {
		daemon := f.Command(t.Context(), "daemon")
		if err := daemon.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(i) * 4 * time.Millisecond)
		if err := daemon.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, ended := daemon.Wait().(*exec.ExitError); !ended { //nolint:errorlint // Wait does not wrap its error
			t.Fatal("the daemon was not killed")
		}
	}
	if diff := cmp.Diff(was, f.running("count")); diff != "" {
		t.Errorf("the pod changed after the daemon was killed: %s", diff)
	}
	if pid := f.process("while :"); pid != counter {
		t.Errorf("PID of the container was %d, is %d", counter, pid)
	}
	f.MustRun("delete", "count")
}
