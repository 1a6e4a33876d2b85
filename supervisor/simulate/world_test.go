package simulate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/simulate"
)

// TestBatches compares a pod that decides after each event with one that decides once at an instant: the events that people see are the
// same.
func TestBatches(t *testing.T) {
	events := func(batches bool) (list []event.Event) {
		w := simulate.New()
		w.Batches = batches
		crash := simulate.Run{Lasts: 3 * time.Second, Exit: lifecycle.Exit{Code: 1}}
		w.Add(mustParse(t, "name = \"p\"\n[[initContainers]]\nname = \"init\"\nimage = \"i:1\"\n[[containers]]\nname = \"app\"\n"+
			"image = \"i:1\"\nreadinessProbe = { exec = [\"a\"], periodSeconds = 1 }\n"),
			simulate.Script{Then: map[string]simulate.Run{"app": crash}})
		w.At(2*time.Minute, func() { w.Crash(time.Second) })
		w.At(4*time.Minute, func() { w.Cut(time.Second, true) })
		w.At(8*time.Minute, func() { w.Reboot(time.Second) })
		if err := w.Run(10 * time.Minute); err != nil {
			t.Fatal(err)
		}
		list, missed := w.Events().Since(0)
		if missed > 0 || len(list) < 50 {
			t.Fatalf("%d events, %d missed", len(list), missed)
		}
		return list
	}
	one, all := events(false), events(true)
	errored := func(list []event.Event) (kept []event.Event) {
		for _, e := range list { // a probe at the instant of the exit
			if e.Kind != api.EventProbeErrored {
				e.Seq, e.Cause = 0, 0
				kept = append(kept, e)
			}
		}
		return kept
	}
	if diff := cmp.Diff(errored(one), errored(all)); diff != "" {
		t.Errorf("decisions after each event and once at an instant differ (-each +once):\n%s", diff)
	}
}

// TestViolation checks that the world finds what a supervisor must never do.
func TestViolation(t *testing.T) {
	w := simulate.New()
	p := w.Add(mustParse(t, "name = \"p\"\n[[containers]]\nname = \"app\"\nimage = \"i:1\"\n"), simulate.Script{})
	w.At(time.Minute, func() { // the record of a running container is lost
		a := &p.Facts.Container("app").Newest
		a.Exited, a.Exit = w.Now(), lifecycle.Exit{Code: 1, Reason: lifecycle.ReasonError}
	})
	if err := w.Run(time.Hour); err == nil {
		t.Error("two runs of a container at the same time are no violation")
	}
}
