//go:build e2e

package faults

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestCostPerPod counts what the daemon needs for each pod of one container that is left alone. docs/design/resources.md lists the
// descriptors.
func TestCostPerPod(t *testing.T) {
	const (
		pods           = 10
		maxDescriptors = 40 // in all, not for each pod: 27 were counted, and a few for what is in progress
		baseGoroutines = 54 // without pods; with ten pods, 115 were counted in all
		maxGoroutines  = 10
	)
	f := newFixture(t)
	f.MustRun("get")
	for i := range pods {
		f.MustCreate(fmt.Sprintf("p%d", i), container("c", "exec sleep 100000"))
	}
	for i := range pods {
		f.running(fmt.Sprintf("p%d", i))
	}
	daemon, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	f.Await(func() error { // requests and saves in progress end
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", daemon))
		if n := len(open); err == nil && n > maxDescriptors {
			err = fmt.Errorf("%d descriptors, want at most %d", n, maxDescriptors)
		}
		return err
	})
	before, err := os.ReadFile(f.DaemonLog())
	f.Check(err)
	f.Check(unix.Kill(daemon, unix.SIGQUIT)) // the Go runtime writes the stacks of all goroutines to the log, and exits
	f.Await(func() error {
		if rig.IsAlive(daemon) {
			return fmt.Errorf("daemon %d is alive", daemon)
		}
		return nil
	})
	log, err := os.ReadFile(f.DaemonLog())
	f.Check(err)
	dump := string(log[len(before):])
	n := strings.Count(dump, "\ngoroutine ")
	if n < pods {
		t.Fatalf("%d goroutines in the log:\n%s", n, dump)
	}
	t.Logf("%d goroutines", n)
	if n > baseGoroutines+pods*maxGoroutines {
		t.Errorf("%d goroutines, want at most %d and %d per pod", n, baseGoroutines, maxGoroutines)
		t.Log(dump)
	}
	f.MustRun("delete", "--all", "--force")
}
