package explain_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
)

func TestNothingIsKnown(t *testing.T) {
	for _, events := range [][]event.Event{nil, {{Seq: 1, Kind: event.StateUnsupported, Pod: "web"}}} {
		if s, known := explain.Gone(events); known {
			t.Errorf("of %v: %+v", events, s)
		}
	}
}

// TestSandboxIsLost: whether the loss or the end of the container is seen first is chance, and both are told.
func TestSandboxIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pod = pod("sleep 31536000")
		w.add()
		time.Sleep(time.Minute)
		before, _ := w.Pod("web")
		w.engine.LoseSandbox(before.Facts.UID)
		time.Sleep(time.Minute)
		text := w.text(w.story())
		for _, want := range []string{"the pod's sandbox was lost: ", "it exited with 137 (SIGKILL)", "it was started again", "app was restarted once"} {
			if !strings.Contains(text, want) {
				t.Errorf("without %q the story is\n%s", want, text)
			}
		}
	})
}
