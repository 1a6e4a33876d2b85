//go:build e2e

package runtime_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestOOM: a container of which the kernel kills the main process, for want of its own memory or its pod's.
func TestOOM(t *testing.T) {
	memory := spec.Resources{Limits: spec.ResourceList{"memory": quantity("32Mi")}}
	eat := []string{"tail", "/dev/zero"}
	for _, test := range []struct {
		name      string
		pod       *spec.Pod
		container spec.Container
	}{
		{"its own limit", &spec.Pod{}, spec.Container{Command: eat, Resources: memory}},
		{"the pod's", &spec.Pod{Resources: memory}, spec.Container{Command: eat}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPod(newMachine(t), test.pod)
			ref, err := p.start(test.container)
			if err != nil {
				t.Fatal(err)
			}
			if exit := p.wait(ref); exit.Code != 137 || exit.Reason != lifecycle.ReasonOOMKilled {
				t.Errorf("exit: %+v, want 137 OOMKilled", exit)
			}
		})
	}
}

// TestOOMOfThePod: what containers of a pod take together has a bound of its own. The one that takes more is killed, and it is
// known of that one alone.
func TestOOMOfThePod(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{Resources: spec.Resources{Limits: spec.ResourceList{"memory": quantity("48Mi")}}})
	holds, err := p.start(sh("head -c 20000000 /dev/zero > /dev/shm/held && echo ready; exec sleep 100000"))
	if err != nil {
		t.Fatal(err)
	}
	p.eventually("it holds memory", func() (string, bool) { log := p.log(holds); return log, log == "ready\n" })
	eats := spec.Container{Command: []string{"tail", "/dev/zero"}, Resources: spec.Resources{Limits: spec.ResourceList{"memory": quantity("44Mi")}}}
	ref, err := p.start(eats)
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.wait(ref); exit.Code != 137 || exit.Reason != lifecycle.ReasonOOMKilled {
		t.Errorf("exit: %+v, want 137 OOMKilled", exit)
	}
	if err := p.KillContainer(p.ctx(), uid, holds); err != nil {
		t.Fatal(err)
	}
	if exit := p.wait(holds); exit.Code != 137 || exit.Reason != lifecycle.ReasonError {
		t.Errorf("the other's exit: %+v, want 137 Error", exit)
	}
}

// TestOOMOfAChild: with cgroup v1 the kernel kills one process, and its parent goes on; with v2 the whole container, at once.
func TestOOMOfAChild(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{})
	c := sh("tail /dev/zero; echo $?; exit 3")
	c.Resources.Limits = spec.ResourceList{"memory": quantity("32Mi")}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	want, says := lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonOOMKilled}, "137\n"
	if controllers, err := cgroup.LookAtControllers(); err != nil || controllers.Unified {
		want.Code, says = 137, ""
	}
	exit := p.wait(ref)
	if peak := exit.MemoryPeak; peak < 16<<20 || peak > 32<<20 {
		if _, err := os.Stat("/sys/fs/cgroup/memory.peak"); err == nil || peak != 0 { // the kernel may not report it
			t.Errorf("the memory peak is %d bytes", peak)
		}
	}
	exit.MemoryPeak = 0
	if exit != want || !strings.Contains("\n"+p.log(ref), "\n"+says) { // what the shell says of the kill comes by another stream
		t.Errorf("exit: %+v, want %+v; it wrote %q", exit, want, p.log(ref))
	}
}

// TestOOMWhileAway: the daemon learns why a container ended while there was none.
func TestOOMWhileAway(t *testing.T) {
	p := newPod(newMachine(t), &spec.Pod{})
	c := sh("until [ -e /go ]; do sleep 0.05; done; exec tail /dev/zero")
	c.Resources.Limits = spec.ResourceList{"memory": quantity("32Mi")}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	pid := p.pidOf(ref)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/root/go", pid), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.eventually("its end", func() (string, bool) {
		err := unix.Kill(pid, 0)
		return fmt.Sprint(err), err != nil
	})
	p.machine.start()
	if exit := p.wait(ref); exit.Code != 137 || exit.Reason != lifecycle.ReasonOOMKilled {
		t.Errorf("exit: %+v, want 137 OOMKilled", exit)
	}
}
