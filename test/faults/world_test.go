//go:build e2e

package faults

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// TestContainerIgnoresStop: a container that ignores SIGTERM is killed at the end of its grace period.
//
// fields: terminationGracePeriodSeconds
func TestContainerIgnoresStop(t *testing.T) {
	f := newFixture(t)
	r := f.start(f.PodFile("deaf",
		"terminationGracePeriodSeconds = 2\n"+container("c", "trap '' TERM; echo up; while :; do sleep 0.1; done")))
	r.line("c", 1)
	r.interrupt()
	if code := r.exitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	stopped, killed, dead := r.event(api.EventPodStopping), r.event(api.EventContainerKilled), r.event(api.EventContainerFailed)
	if grace := killed.Time.Sub(stopped.Time); grace < 1900*time.Millisecond {
		t.Errorf("killed after %v, the grace period is 2 s", grace)
	}
	if dead.Fields["code"] != "137" {
		t.Errorf("exit event: %+v", dead.Fields)
	}
}

// TestNameTaken: a second pod with the same name is rejected with the owner of the first, which is not affected.
func TestNameTaken(t *testing.T) {
	f := newFixture(t)
	file := f.PodFile("one", container("c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"))
	first := f.start(file)
	first.line("c", 1)
	second := f.start(file)
	if code := second.exitCode(); code != 1 || !strings.Contains(second.errors(), `"one"`) ||
		!strings.Contains(second.errors(), "podstead run") {
		t.Errorf("exit code %d, %s", code, second.errors())
	}
	first.interrupt()
	if code := first.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestRegistryHangs: a pod whose registry does not respond can be stopped.
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
			called <- conn // no response
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
		t.Fatal("no connection to the registry")
	}
	stopped := time.Now()
	r.interrupt()
	r.exitCode()
	// A stop is immediate. The timeout of the registry is longer, and the host may be loaded.
	if took := time.Since(stopped); took > 20*time.Second {
		t.Errorf("podstead run exited %v after Ctrl-C", took)
	}
}

// TestCrashLoop runs the example: the delays of restarts increase, and Ctrl-C does not wait for the next restart.
func TestCrashLoop(t *testing.T) {
	f := newFixture(t)
	checkGaps(f, f.start(filepath.Join(f.Repository, "examples", "crash.toml")), 0, 10*time.Second, 20*time.Second)
}
