package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// TestPodOfUnit: the pod of a systemd unit is recovered after a crash. After a boot it is deleted without a start: its unit starts it.
func TestPodOfUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		added, err := m.Add(pod("p", spec.RestartAlways, "sleep 100000"), state.Owner{Unit: "podstead@p.service", By: "podstead@p.service"})
		if err != nil {
			t.Fatal(err)
		}
		ready := func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready }
		m.until("p", "ready", ready)
		m.crash()
		m.start()
		if s := m.until("p", "ready", ready); s.Facts.UID != added.Facts.UID || s.Status.ContainerStatuses[0].RestartCount != 0 ||
			s.Owner.Unit == "" {
			t.Errorf("after a crash: %+v", s)
		}
		m.crash()
		m.engine.Reboot()
		m.boot = "boot-2"
		before := len(m.engine.Calls())
		m.start()
		m.untilRemoved("p")
		if slices.ContainsFunc(m.engine.Calls()[before:],
			func(c fakeruntime.Call) bool { return c.Method == "StartSandbox" || c.Method == "StartContainer" }) {
			t.Errorf("the pod was started after a boot: %v", m.engine.Calls()[before:])
		}
	})
}
