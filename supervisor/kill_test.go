package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestKillEvent expects the grace period that a container exceeded in the event of its kill.
func TestKillEvent(t *testing.T) {
	seconds := func(n int) *time.Duration {
		d := time.Duration(n) * time.Second
		return &d
	}
	const (
		exceeded30 = "Container c0 did not stop within its grace period of 30s, killing it"
		exceeded5  = "Container c0 did not stop within its grace period of 5s, killing it"
		none       = "Container c0 has no grace period, killing it"
	)
	failing := &spec.Probe{
		Exec: &spec.ExecAction{Command: []string{"fails"}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
	}
	for name, test := range map[string]struct {
		liveness    *spec.Probe
		hook        bool
		first, then *time.Duration // grace periods of stop requests, the second 2s after the first; the first is nil: no request
		want, grace string
	}{
		"grace period exceeded":                   {first: seconds(30), want: exceeded30, grace: "30s"},
		"grace period 0":                          {first: seconds(0), want: none},
		"grace period shortened":                  {first: seconds(30), then: seconds(5), want: exceeded5, grace: "5s"},
		"forced during the grace period":          {first: seconds(30), then: seconds(0), want: none},
		"grace period with a preStop hook":        {hook: true, first: seconds(30), want: exceeded30, grace: "30s"},
		"shortened with a preStop hook":           {hook: true, first: seconds(30), then: seconds(5), want: exceeded5, grace: "5s"},
		"liveness probe failed":                   {liveness: failing, want: exceeded30, grace: "30s"},
		"liveness probe failed, then pod stopped": {liveness: failing, first: seconds(5), want: exceeded5, grace: "5s"},
		"liveness probe failed, then pod forced":  {liveness: failing, first: seconds(0), want: none},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAnswers(map[string]string{"fails": "exit 1", "hook": "sleep 1"})
				m := newMachine(t, fakeruntime.Options{Exec: a.program})
				m.start()
				p := pod("p", spec.RestartAlways, "sleep 100000")
				p.Containers[0].LivenessProbe = test.liveness
				if test.hook {
					p.Containers[0].Lifecycle = &spec.Lifecycle{PreStop: execHook("hook")}
				}
				m.add(p)
				time.Sleep(5 * time.Second)
				for _, grace := range []*time.Duration{test.first, test.then} {
					if grace == nil {
						continue
					}
					if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Grace: grace, By: "test"}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
				}
				time.Sleep(28 * time.Second)
				synctest.Wait()
				events, _ := m.Events().Since(0)
				var kills []event.Event
				for _, e := range events {
					if e.Kind == api.EventContainerKilled {
						kills = append(kills, e)
					}
				}
				if len(kills) != 1 || kills[0].Message != test.want || kills[0].Fields["grace"] != test.grace {
					t.Errorf("kills: %+v; want one with the message %q and the grace period %q", kills, test.want, test.grace)
				}
			})
		})
	}
}

// TestExitIsSavedBeforeRemoval expects the exits of containers on the disk before these are removed, since a daemon that is killed
// meanwhile finds them nowhere else. A disk that hangs delays a removal, and does not prevent it.
func TestExitIsSavedBeforeRemoval(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var (
				m        *machine
				mu       sync.Mutex
				removals []string
				early    error
			)
			m = newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
				if !strings.HasPrefix(c.Method, "Remove") {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				removals = append(removals, c.Method)
				saved, _, _ := m.disk.Load()
				for _, p := range saved {
					for _, ref := range p.Facts.Live() {
						if c.Method != "RemoveContainer" || ref == (lifecycle.Ref{Container: c.Container, Attempt: c.Attempt}) {
							early = errors.Join(early, errors.New(c.Method+" before the exit of "+ref.Container+" is saved"))
						}
					}
				}
				return nil
			}})
			m.start()
			m.add(pod("p", spec.RestartAlways, "sleep 100000", "sleep 3; exit 1"))
			time.Sleep(time.Minute) // with restarts
			if hangs {
				hang := make(chan struct{})
				m.disk.mu.Lock()
				m.disk.hang = hang
				m.disk.mu.Unlock()
				defer close(hang)
			}
			if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !hangs && early != nil {
				t.Error(early)
			}
			if all := strings.Join(removals, " "); !strings.Contains(all, "RemoveSandbox") && !strings.Contains(all, "RemovePod") {
				t.Errorf("removals %q, the disk hangs: %t", all, hangs)
			}
		})
	}
}
