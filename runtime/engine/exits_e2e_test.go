//go:build e2e

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// burst bounds what the monitor does after many processes have exited at once. It takes a few seconds, or minutes if it blocks
// (as containerd#13814 describes it for shims).
const burst = 40 * time.Second

// each calls f for 0 to n-1, a few at a time, and returns the errors.
func each(n, parallel int, f func(int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, parallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func TestDeleteHundredContainersAtOnce(t *testing.T) {
	w := newEnv(t)
	e := w.start()
	defer w.stop(e)
	s := w.sandbox(e, "pod")
	defer w.remove(e, "pod")
	const n = 100
	containers := make([]*container, n)
	if err := each(n, 4, func(i int) (err error) {
		containers[i], err = w.runContainer(ctxOf(t), s, fmt.Sprintf("c%d", i), "sleep 1000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctxOf(t), burst)
	defer cancel()
	if err := each(n, n, func(i int) error {
		_, err := containers[i].Delete(ctx, client.WithProcessKill)
		return err
	}); err != nil {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	t.Logf("deleted %d containers in %v", n, time.Since(start))
	for _, c := range containers {
		if err := c.record.Delete(ctxOf(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestExitOfContainerWithThousandChildren(t *testing.T) {
	const script = `i=0; while [ $i -lt 1000 ]; do i=$((i+1)); sleep 1000 & done; echo ready; wait`
	for _, test := range []struct {
		name    string
		hostPID bool
		kill    func(*container) error
	}{
		{name: "crash in the host's PID namespace", hostPID: true, kill: killFirst},
		{name: "deletion in the host's PID namespace", hostPID: true, kill: killAll},
		{name: "crash in the pod's PID namespace", kill: killFirst},
		{name: "deletion in the pod's PID namespace", kill: killAll},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newEnv(t)
			e := w.start()
			defer w.stop(e)
			s := w.sandbox(e, "pod")
			defer w.remove(e, "pod")
			pid := oci.WithHostNamespace(specs.PIDNamespace)
			if !test.hostPID {
				pause := w.run(s, "pause", "while :; do usleep 10000; done")
				defer w.delete(pause)
				pid = oci.WithLinuxNamespace(specs.LinuxNamespace{
					Type: specs.PIDNamespace, Path: fmt.Sprintf("/proc/%d/ns/pid", pause.Pid()),
				})
			}
			start := time.Now()
			c := w.run(s, "c", script, pid)
			w.eventually("the children", func() (string, bool) { return "", len(w.lines("c")) > 0 })
			t.Logf("started in %v", time.Since(start))

			start = time.Now()
			if err := test.kill(c); err != nil {
				t.Error(err)
			}
			if got := w.exited(c); got != 137 {
				t.Errorf("exit code %d, want 137", got)
			}
			exited := time.Since(start)
			again := w.run(s, "again", "exit 3", pid)
			if got := w.exited(again); got != 3 {
				t.Errorf("exit code of the next container %d, want 3", got)
			}
			w.delete(again)
			w.delete(c)
			if took := time.Since(start); took > burst {
				t.Errorf("exit, start and deletion took %v, want at most %v", took, burst)
			} else {
				t.Logf("exited in %v, all in %v", exited, took)
			}
		})
	}
}

// killFirst kills the first process of a container from outside, as a crash does.
func killFirst(c *container) error { return unix.Kill(int(c.Pid()), unix.SIGKILL) }

// killAll kills all processes of a container through the monitor.
func killAll(c *container) error {
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(context.Background(), Namespace), burst)
	defer cancel()
	return c.Kill(ctx, unix.SIGKILL, client.WithKillAll)
}
