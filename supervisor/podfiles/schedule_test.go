package podfiles

import (
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

const nightly = "restartPolicy = \"Never\"\nschedule.cron = \"0 3 * * *\"\n"

// TestScheduled: a file with a schedule is shown, and its pod is started under other names.
func TestScheduled(t *testing.T) {
	t.Parallel()
	files := map[string]string{"web.toml": nightly + podText("busybox:1")}
	d := factsOf(files).plan()
	if len(d.steps) != 0 || len(d.files) != 1 || d.files[0].Refused != nil || d.files[0].Reason != "" ||
		d.files[0].Definition.Schedule == nil {
		t.Errorf("%+v", d)
	}
	client := running("web", "web.toml", "busybox:1").with(func(p *pod) { p.file, p.by = "", "created by podstead run" })
	d = factsOf(files, client).plan()
	if f := d.files[0]; len(d.steps) != 0 || f.Reason != api.ReasonRejected ||
		!strings.Contains(f.Refused.Error(), "created by podstead run") {
		t.Errorf("with a pod of the name: %+v", d)
	}
}

// TestScheduleAdded: the pod of a file that gets a schedule ends, as if its file were removed.
func TestScheduleAdded(t *testing.T) {
	t.Parallel()
	w := factsOf(map[string]string{"web.toml": nightly + podText("busybox:1")}, running("web", "web.toml", "busybox:1"))
	if d := w.plan(); len(d.steps) != 1 || d.steps[0].kind != remove || d.steps[0].pod != "web" {
		t.Errorf("%+v", d)
	}
	w.missing["web"] = absence{file: testDir + "/web.toml", since: w.listed}
	if d := w.plan(); len(d.steps) != 0 || !d.again.Equal(w.listed.Add(time.Second)) {
		t.Errorf("a moment ago: %+v", d)
	}
	w = factsOf(map[string]string{"web.toml": podText("busybox:1")})
	if d := w.plan(); len(d.steps) != 1 || d.steps[0].kind != add {
		t.Errorf("a schedule that was removed: %+v", d)
	}
}

// TestApplySchedule: what applying a file with a schedule changes does not depend on pods, and does nothing to what runs.
func TestApplySchedule(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	file := func(cron, hash string) string { return strings.Replace(nightly, "0 3", cron, 1) + named("web", hash) }
	if names, complete := b.set.Known(); complete && names["web"] {
		t.Error("the pod is known before its file")
	}
	for _, step := range []struct {
		text    string
		want    api.Outcome
		changes int
	}{
		{file("0 3", "a"), api.PodCreated, 0},
		{file("0 3", "a"), api.PodUnchanged, 0},
		{file("0 4", "b"), api.PodConfigured, 1},
	} {
		plan, err := b.apply("web", ".toml", step.text, false)
		if err != nil || plan.Outcome != step.want || len(plan.Changes) != step.changes {
			t.Fatalf("%+v, %v, want %s with %d changes", plan, err, step.want, step.changes)
		}
		for _, c := range plan.Changes {
			if c.Container != "" || c.Effect.String() != "InPlace" && c.Effect.String() != "NextRound" {
				t.Errorf("%+v changes what runs", c)
			}
		}
	}
	if pods := b.Pods(); len(pods) != 0 {
		t.Errorf("%d pods", len(pods))
	}
	if names, complete := b.set.Known(); !complete || !names["web"] {
		t.Errorf("known are %v, %v", names, complete)
	}
}
