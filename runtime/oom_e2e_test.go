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

// TestOOM tests a container whose first process is OOM-killed, because of its own limit or that of the pod.
func TestOOM(t *testing.T) {
	memory := spec.Resources{Limits: spec.ResourceList{"memory": quantity("32Mi")}}
	eat := []string{"tail", "/dev/zero"}
	for _, test := range []struct {
		name      string
		pod       *spec.Pod
		container spec.Container
	}{
		{"limit of the container", &spec.Pod{}, spec.Container{Command: eat, Resources: memory}},
		{"limit of the pod", &spec.Pod{Resources: memory}, spec.Container{Command: eat}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPod(newTestHost(t), test.pod)
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

// If the containers of a pod together exceed the limit of the pod, one is OOM-killed, and only that one has the reason OOMKilled.
func TestOOMPodLimit(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{Resources: spec.Resources{Limits: spec.ResourceList{"memory": quantity("48Mi")}}})
	holds, err := p.start(sh("head -c 20000000 /dev/zero > /dev/shm/held && echo ready; exec sleep 100000"))
	if err != nil {
		t.Fatal(err)
	}
	p.eventually("the container to allocate memory", func() (string, bool) { log := p.log(holds); return log, log == "ready\n" })
	eats := spec.Container{
		Command: []string{"tail", "/dev/zero"}, Resources: spec.Resources{Limits: spec.ResourceList{"memory": quantity("44Mi")}},
	}
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
		t.Errorf("exit of the other container: %+v, want 137 Error", exit)
	}
}

// With cgroup v1 the kernel kills one process, and its parent keeps running. With v2 it kills all processes of the container.
func TestOOMChild(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	c := sh("tail /dev/zero; echo $?; exit 3")
	c.Resources.Limits = spec.ResourceList{"memory": quantity("32Mi")}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	want, output := lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonOOMKilled}, "137\n"
	if controllers, err := cgroup.DetectControllers(); err != nil || controllers.Unified {
		want.Code, output = 137, ""
	}
	exit := p.wait(ref)
	if peak := exit.MemoryPeak; peak < 16<<20 || peak > 32<<20 {
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil || peak != 0 { // memory.peak needs Linux 5.19
			t.Errorf("got a memory peak of %d bytes, want at most the limit", peak)
		}
	}
	exit.MemoryPeak = 0
	if exit != want || !strings.Contains("\n"+p.log(ref), "\n"+output) { // the shell's message about the kill is in another stream
		t.Errorf("exit: %+v, want %+v; output %q", exit, want, p.log(ref))
	}
}

// A daemon reports an OOM kill that happened while no daemon was running.
func TestOOMWithoutDaemon(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
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
	p.eventually("the exit of the container", func() (string, bool) {
		err := unix.Kill(pid, 0)
		return fmt.Sprint(err), err != nil
	})
	p.testHost.start()
	if exit := p.wait(ref); exit.Code != 137 || exit.Reason != lifecycle.ReasonOOMKilled {
		t.Errorf("exit: %+v, want 137 OOMKilled", exit)
	}
}
