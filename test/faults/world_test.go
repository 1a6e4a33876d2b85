//go:build e2e

package faults

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/test/internal/rig"
)

// TestShimKilled: with its shim a pod loses its sandbox. Its containers are killed with it, and a new round begins with the
// init containers.
func TestShimKilled(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("p", strings.Replace(container("prepare", "echo prepared"), "containers", "initContainers", 1)+
		container("work", "trap 'exit 0' TERM; echo working; while :; do sleep 0.1; done")))
	r.line("work", 1)
	f.Check(rig.Kill(f.Ctx(), f.shim()))
	r.line("work", 2)
	r.line("prepare", 2) // whose line is read first, nobody says
	if got := r.lines("prepare"); !slices.Equal(got, []string{"prepared", "prepared"}) {
		t.Errorf("the init container wrote %q, want it to have run twice", got)
	}
	if lost := r.event(event.ContainerFailed); lost.Container != "work" || lost.Fields["code"] != "137" {
		t.Errorf("the lost container: %+v", lost)
	}
	r.event(event.SandboxChanged)
	r.interrupt()
	if status := r.status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestContainerIgnoresStop: SIGKILL comes when the grace period is over.
//
// fields: terminationGracePeriodSeconds
func TestContainerIgnoresStop(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("deaf", "terminationGracePeriodSeconds = 2\n"+container("c", "trap '' TERM; echo up; while :; do sleep 0.1; done")))
	r.line("c", 1)
	r.interrupt()
	if status := r.status(); status != 1 {
		t.Errorf("exit status %d, want 1: it was killed", status)
	}
	asked, killed, dead := r.event(event.PodStopping), r.event(event.ContainerKilled), r.event(event.ContainerFailed)
	if grace := killed.Time.Sub(asked.Time); grace < 1900*time.Millisecond {
		t.Errorf("killed after %v, the grace period is 2 s", grace)
	}
	if dead.Fields["code"] != "137" {
		t.Errorf("it ended with %+v", dead.Fields)
	}
}

// TestNameTaken: the second of a name is told who has it, and changes nothing.
func TestNameTaken(t *testing.T) {
	f := newFixture(t)
	file := f.PodFile("one", container("c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"))
	first := f.start(file)
	first.line("c", 1)
	second := f.start(file)
	if status := second.status(); status != 1 || !strings.Contains(second.errors(), `"one"`) || !strings.Contains(second.errors(), "podstead run") {
		t.Errorf("exit status %d, %s", status, second.errors())
	}
	first.interrupt()
	if status := first.status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestRegistryHangs: whoever waits for a registry that says nothing can still end the pod.
func TestRegistryHangs(t *testing.T) {
	f := newFixture(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	called := make(chan net.Conn, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(called)
				return
			}
			called <- conn // and nobody answers
		}
	}()
	file, err := f.WritePod("waits", "name = \"waits\"\n[[containers]]\nname = \"c\"\nimage = \""+l.Addr().String()+"/image:1\"\n")
	if err != nil {
		t.Fatal(err)
	}
	r := f.start(file)
	select {
	case conn := <-called:
		defer conn.Close()
	case <-f.Ctx().Done():
		t.Fatal("nobody called the registry")
	}
	asked := time.Now()
	r.interrupt()
	r.status()
	// It is there at once; a registry has longer to answer, and the machine may be busy.
	if took := time.Since(asked); took > 20*time.Second {
		t.Errorf("it ended %v after Ctrl-C", took)
	}
}

// TestCrashLoop runs the example: restarts come slower and slower, and Ctrl-C does not wait for the next.
func TestCrashLoop(t *testing.T) {
	f := newFixture(t)
	checkGaps(f, f.start(filepath.Join(f.Repository, "examples", "crash.toml")), 0, 10*time.Second, 20*time.Second)
}
