package explain_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

var update = flag.Bool("update", false, "write the golden files")

// reboot reboots the host after the pod has run for an hour.
func (w *world) reboot() {
	w.add()
	time.Sleep(time.Hour)
	w.ShutDown(w.t.Context(), time.Minute, lifecycle.ByShutdown)
	w.boots("2")
}

// losePower boots the host, which was not shut down.
func (w *world) losePower(boot string) {
	w.unclean = w.boot
	w.boots(boot)
	w.unclean = ""
}

// boots boots the host.
func (w *world) boots(boot string) {
	w.leave()
	w.engine.Reboot()
	w.boot = boot
	w.start()
	time.Sleep(time.Minute)
}

// server exits with code 143 when it is stopped, forever ignores the signal.
const server, forever = "trap 'exit 143' TERM; sleep 31536000", "sleep 31536000"

// scenario is a pod and what happens to it. Its report is in testdata, under its name.
type scenario struct {
	name string
	pod  *spec.Pod
	run  func(w *world) // starts before the pod, which it adds
}

// explains compares the reports of scenarios with their golden files. With -update it writes these.
func explains(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, test := range scenarios {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.pod = test.pod
				test.run(w)
				e := w.explanation()
				golden(t, test.name+".txt", w.report(&e))
				if asJSON[test.name] {
					golden(t, test.name+".json", w.json(&e))
				}
			})
		})
	}
}

// asJSON are the scenarios whose typed fields have a golden file too.
var asJSON = map[string]bool{
	"crash-loop": true, "liveness-failed": true, "oom-killed": true, "sidecar-image-pull": true, "deadline": true, "image-importing": true,
}

// golden compares a text with a file in testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", name, diff)
	}
}

// A pod may be rejected after another of its name was deleted.
func TestRejected(t *testing.T) {
	refused := event.Event{
		Seq: 3, Kind: api.EventPodRejected, Pod: "web", Fields: map[string]string{"error": "NodePorts: taken", "hint": "take another"},
	}
	for _, before := range [][]event.Event{
		nil, {{Seq: 1, Kind: api.EventPodAccepted, Pod: "web", UID: "u"}, {Seq: 2, Kind: api.EventPodRemoved, Pod: "web", UID: "u"}},
	} {
		e, known := explain.ForDeletedPod(append(before, refused))
		explain.Render(&e, time.Time{})
		want := "web was rejected: NodePorts: taken.\nhint: take another\n"
		got := explain.Report(&e, time.Time{})
		if !known || e.UID != "" || e.Healthy || e.State != api.PodStateRejected || !strings.HasPrefix(got, want) {
			t.Errorf("after %v:\n%s", before, got)
		}
	}
}
