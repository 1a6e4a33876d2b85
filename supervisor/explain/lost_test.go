package explain_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
)

func TestDeletedPodWithoutEvents(t *testing.T) {
	for _, events := range [][]event.Event{nil, {{Seq: 1, Kind: api.EventStateUnsupported, Pod: "web"}}} {
		if s, known := explain.ForDeletedPod(events); known {
			t.Errorf("of %v: %+v", events, s)
		}
	}
}

// Whether the loss of the sandbox or the exit of the container is seen first is chance. The timeline has both.
func TestSandboxLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pod = pod("sleep 31536000")
		w.add()
		time.Sleep(time.Minute)
		before, _ := w.Pod("web")
		w.engine.LoseSandbox(before.Facts.UID)
		time.Sleep(time.Minute)
		e := w.explanation()
		text := w.report(&e)
		for _, want := range []string{
			"Pod sandbox changed, it will be killed and re-created: ", "Container exited with code 137 (Error)", "Container started",
			"web restarted once because the pod sandbox changed",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("want %q in\n%s", want, text)
			}
		}
	})
}

func TestMonitorUnresponsive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pod = pod("sleep 31536000")
		w.add()
		time.Sleep(time.Minute)
		p, _ := w.Pod("web")
		w.engine.HangShim(p.Facts.UID, true)
		time.Sleep(time.Minute)
		e := w.explanation()
		text := w.report(&e)
		for _, want := range []string{
			"web is in an unknown state because the monitor of its containers does not respond. ",
			"  The monitor of the containers does not respond, ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("want %q in\n%s", want, text)
			}
		}
		if e.Healthy || e.Cause == nil || e.Cause.Kind != api.CauseMonitorUnresponsive {
			t.Errorf("healthy: %v, cause: %+v", e.Healthy, e.Cause)
		}
		w.engine.HangShim(p.Facts.UID, false)
		time.Sleep(time.Minute)
		if e := w.explanation(); e.State != api.PodStateReady {
			t.Errorf("state %s when the shim responds again, want Ready", e.State)
		}
	})
}
