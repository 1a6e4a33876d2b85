package daemon

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func pod(name string, phase lifecycle.Phase, ready string) supervisor.Snapshot {
	return supervisor.Snapshot{Pod: &spec.Pod{Name: name}, Status: lifecycle.Status{
		Phase: phase, Conditions: []lifecycle.Condition{{Type: lifecycle.PodReady, Status: ready}},
	}}
}

func TestStatusLine(t *testing.T) {
	web, db := pod("web", lifecycle.PhaseRunning, "True"), pod("db", lifecycle.PhaseRunning, "False")
	done := pod("job", lifecycle.PhaseSucceeded, "False")
	for _, test := range []struct {
		pods []supervisor.Snapshot
		want string
	}{
		{nil, "0 pods, 0 ready"},
		{[]supervisor.Snapshot{web}, "1 pod, 1 ready"},
		{[]supervisor.Snapshot{web, done}, "2 pods, 1 ready, 1 succeeded"},
		{[]supervisor.Snapshot{db, web}, "2 pods, 1 ready, 1 not ready: db"},
		{
			[]supervisor.Snapshot{
				pod("a", lifecycle.PhasePending, "False"), pod("b", lifecycle.PhaseFailed, "False"), db,
				pod("e", lifecycle.PhasePending, ""),
			},
			"4 pods, 0 ready, 4 not ready: a, b, db, …",
		},
	} {
		if got := statusLine(test.pods); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestReportStatus: only changes of the line are sent, at most one each second.
func TestReportStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		var mu sync.Mutex
		var pods []supervisor.Snapshot
		changed := make(chan struct{})
		change := func(list ...supervisor.Snapshot) {
			mu.Lock()
			pods = list
			close(changed)
			changed = make(chan struct{})
			mu.Unlock()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			reportStatus(ctx, func() []supervisor.Snapshot {
				mu.Lock()
				defer mu.Unlock()
				return pods
			}, func() <-chan struct{} {
				mu.Lock()
				defer mu.Unlock()
				return changed
			}, func(line string) { sent = append(sent, line) })
		}()
		synctest.Wait()
		change(pod("web", lifecycle.PhasePending, "False"))
		change(pod("web", lifecycle.PhaseRunning, "True"))
		time.Sleep(2 * time.Second)
		change(pod("web", lifecycle.PhaseRunning, "True"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := []string{"0 pods, 0 ready", "1 pod, 1 ready"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
		cancel()
		<-stopped
	})
}
