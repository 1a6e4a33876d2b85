package explain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
)

func TestRequests(t *testing.T) {
	two := pod(server)
	two.Containers = append(two.Containers, spec.Container{Name: "other", Image: "i:1", Command: []string{"sh", "-c", server}})
	explains(t, []scenario{
		{"restart-pod", pod(server), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.restart("")
		}},
		{"restart-container", two, func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.restart("other")
		}},
		{"start", pod(server), func(w *world) {
			w.add()
			w.sleep(time.Minute)
			w.stop(supervisor.StopOptions{})
			w.sleep(time.Minute)
			if err := w.Start(w.t.Context(), "web", "", "uid 0"); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(time.Minute)
		}},
	})
}

// TestDefinitionChanged expects the cause of a restart that a change of the definition led to.
func TestDefinitionChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pod = pod(server)
		w.add()
		w.sleep(time.Minute)
		if err := w.Restart(t.Context(), "web", "", "app", "uid 0"); err != nil {
			t.Fatal(err)
		}
		w.sleep(time.Minute)
		s, _ := w.Pod("web")
		events, err := w.History(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		for i := range events { // as if the definition had changed
			switch e := &events[i]; e.Kind { //nolint:exhaustive // other events are unchanged
			case api.EventRestartRequested:
				e.Kind, e.Container = api.EventDefinitionChanged, ""
				e.Fields = event.Fields{"changes": "containers[0].image", "by": "uid 0"}
			case api.EventContainerStopping:
				e.Kind, e.Fields = api.EventContainerChanged, event.Fields{"container": "app", "changes": "containers[0].image"}
			default:
			}
		}
		e := explain.ForPod(&s, events, w.now())
		explain.Render(&e, w.now().Wall)
		const want = `web restarted once because its definition changed: containers[0].image. It is ready now.`
		if !e.Healthy || e.Text != want || e.Cause.Kind != api.CauseDefinitionChanged {
			t.Errorf("%q, want %q; cause %+v", e.Text, want, e.Cause)
		}
	})
}
