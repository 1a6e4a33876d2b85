//go:build e2e

package faults

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/state"
)

// TestStateDiskSlow: on a slow disk, a state that takes long to be saved is reported, probes continue, containers restart, and the daemon
// answers at once. Pods can be stopped and deleted. When the disk is fast again, states are saved.
func TestStateDiskSlow(t *testing.T) {
	f := newFixture(t)
	f.Ext4Disk()
	f.Env = append(f.Env, "PODSTEAD_LOG_DIR="+filepath.Join(f.StateDir(), "log")) // /var/lib and /var/log are often one file system
	f.MustRun("get")
	gate := f.gatedPod("probed")
	for _, name := range []string{"stopped", "deleted"} {
		f.MustCreate(name, "terminationGracePeriodSeconds = 1\n"+container("c", idle))
	}
	f.MustCreate("crashes",
		"terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+container("c", crashing))
	f.awaitReady("probed", "c")
	for _, name := range []string{"stopped", "deleted", "crashes"} {
		f.running(name)
	}

	answers := f.watchAnswers()
	faster := f.SlowDisk(1) // a state takes about ten writes
	f.usr1("exit 1")
	f.Until("crashes", "exited, with a state that is not saved", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return (s.LastState.Terminated != nil || s.State.Terminated != nil) && unsaved(p) != ""
	})
	if out, _ := f.Podstead(f.Ctx(), "why", "crashes"); !strings.Contains(out, "Its state could not be saved") ||
		!strings.Contains(out, state.ErrTimeout.Error()) {
		t.Errorf("podstead why does not report the state that is not saved:\n%s", out)
	}
	for _, ready := range []string{"", "c"} {
		gate(ready != "")
		f.awaitReady("probed", ready)
	}

	faster()
	fast := f.SlowDisk(25)
	f.Until("crashes", "restarted", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.State.Running != nil && s.RestartCount == 1
	})
	f.MustRun("stop", "stopped")
	f.MustRun("delete", "deleted")
	answers()

	fast()
	for _, name := range []string{"crashes", "probed", "stopped"} {
		f.Until(name, "saved", func(p *api.Pod) bool { return unsaved(p) == "" })
	}
	f.checkDurable("crashes", "probed", "stopped")
	f.MustRun("delete", "--all", "--force")
}

// watchAnswers asks for all pods repeatedly, and returns a function that ends this and checks how long each answer took.
func (f *fixture) watchAnswers() (check func()) {
	const limit = 5 * time.Second // an answer takes milliseconds, but the host may be loaded; writes take longer
	ctx, stop := context.WithCancel(f.Context())
	var slowest time.Duration
	var failed error
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			begun := time.Now()
			_, err := f.Client().Pods(ctx)
			if slowest = max(slowest, time.Since(begun)); err != nil && ctx.Err() == nil {
				failed = err
				return
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	f.Cleanup(func() { stop(); asking.Wait() })
	return func() {
		f.Helper()
		stop()
		asking.Wait()
		if failed != nil || slowest > limit {
			f.Errorf("the slowest answer took %v, want at most %v: %v", slowest, limit, failed)
		}
	}
}
