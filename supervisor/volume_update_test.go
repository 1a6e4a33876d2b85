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

func notUpdated(s supervisor.Snapshot) bool { return hasCondition(s, supervisor.VolumesNotUpdated) }

func volumeEvents(m *machine) []api.EventKind {
	var kinds []api.EventKind
	events, _ := m.Events().Since(0)
	for _, e := range events {
		if e.Kind == api.EventVolumesNotUpdated || e.Kind == api.EventVolumesUpdated {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// podWithSecret is a pod with a volume that is updated.
func podWithSecret() *spec.Pod {
	p := pod("p", spec.RestartAlways, "sleep 100000")
	p.Volumes = []spec.Volume{{Name: "tls", Secret: &spec.SecretVolume{SecretName: "tls"}}}
	return p
}

// TestVolumesNotUpdated expects one event and a condition while the volumes of a pod are not updated, whatever the messages are, and one
// event when they are again.
func TestVolumesNotUpdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		uid := m.add(podWithSecret()).Facts.UID
		m.until("p", "ready", ready)
		for range 3 {
			for _, why := range []string{"tls.key is accessible by other users", "tls.crt is missing"} {
				m.engine.HoldVolumes(uid, why)
				m.until("p", why, func(s supervisor.Snapshot) bool {
					return slices.ContainsFunc(s.Status.Conditions, func(c lifecycle.Condition) bool {
						return c.Type == supervisor.VolumesNotUpdated && c.Message == why
					})
				})
			}
		}
		if got := volumeEvents(m); !slices.Equal(got, []api.EventKind{api.EventVolumesNotUpdated}) {
			t.Errorf("events while the volumes are not updated: %v", got)
		}
		time.Sleep(time.Minute) // it is saved
		m.restartKilled()
		m.until("p", "not updated under the next supervisor", notUpdated)
		m.engine.HoldVolumes(uid, "")
		m.until("p", "updated", func(s supervisor.Snapshot) bool { return !notUpdated(s) })
		if got := volumeEvents(m); !slices.Equal(got, []api.EventKind{api.EventVolumesUpdated}) { // of the next supervisor
			t.Errorf("events when the volumes are updated again: %v", got)
		}
	})
}

// TestVolumesNotUpdatedEnds expects that the condition ends with the sandbox, whose volumes nobody updates.
func TestVolumesNotUpdatedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		uid := m.add(podWithSecret()).Facts.UID
		m.until("p", "ready", ready)
		m.engine.HoldVolumes(uid, "tls.key is missing")
		m.until("p", "not updated", notUpdated)
		m.stop("p")
		m.until("p", "without the condition", func(s supervisor.Snapshot) bool { return !notUpdated(s) })
	})
}
