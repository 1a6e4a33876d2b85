package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func hasCondition(s supervisor.Snapshot, t lifecycle.ConditionType) bool {
	for _, c := range s.Status.Conditions {
		if c.Type == t {
			return c.Status == "True" && c.Message != ""
		}
	}
	return false
}

func unresponsive(s supervisor.Snapshot) bool { return hasCondition(s, supervisor.MonitorUnresponsive) }

func shimEvents(m *machine) []api.EventKind {
	var kinds []api.EventKind
	events, _ := m.Events().Since(0)
	for _, e := range events {
		if e.Kind == api.EventMonitorUnresponsive || e.Kind == api.EventMonitorResponding {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// TestMonitorUnresponsive expects one event and a condition while the shim of a pod does not respond, and one event when it does again.
func TestMonitorUnresponsive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		uid := m.add(pod("p", spec.RestartAlways, "sleep 100000")).Facts.UID
		time.Sleep(5 * time.Second)
		m.engine.HangShim(uid, true)
		m.until("p", "unresponsive", unresponsive)
		time.Sleep(time.Hour)
		if got := shimEvents(m); !slices.Equal(got, []api.EventKind{api.EventMonitorUnresponsive}) {
			t.Errorf("events while the shim does not respond: %v", got)
		}
		m.engine.HangShim(uid, false)
		m.until("p", "responding", func(s supervisor.Snapshot) bool { return !unresponsive(s) })
		if got := shimEvents(m); !slices.Equal(got, []api.EventKind{api.EventMonitorUnresponsive, api.EventMonitorResponding}) {
			t.Errorf("events when the shim responds again: %v", got)
		}
	})
}

// TestMonitorUnresponsiveAtStart expects that the next supervisor reports a shim that does not respond.
func TestMonitorUnresponsiveAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		uid := m.add(pod("p", spec.RestartAlways, "sleep 100000")).Facts.UID
		time.Sleep(5 * time.Second)
		m.engine.HangShim(uid, true)
		m.until("p", "unresponsive", unresponsive)
		m.restartKilled()
		m.until("p", "unresponsive", unresponsive)
	})
}

// TestMonitorUnresponsiveEnds expects that the condition ends with the sandbox.
func TestMonitorUnresponsiveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		uid := m.add(pod("p", spec.RestartAlways, "sleep 100000")).Facts.UID
		time.Sleep(5 * time.Second)
		m.engine.HangShim(uid, true)
		m.until("p", "unresponsive", unresponsive)
		m.engine.LoseSandbox(uid)
		m.until("p", "in a new sandbox", func(s supervisor.Snapshot) bool {
			list := s.Status.ContainerStatuses
			return !unresponsive(s) && len(list) > 0 && list[0].Ready && list[0].RestartCount == 1
		})
	})
}
