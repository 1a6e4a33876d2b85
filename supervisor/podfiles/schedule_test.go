package podfiles

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
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
	session := running("web", "web.toml", "busybox:1").with(func(p *pod) {
		p.file, p.snapshot = "", &supervisor.Snapshot{Owner: state.Owner{Session: "run"}}
	})
	if d = factsOf(files, session).plan(); d.files[0].Reason != "" || d.files[0].Refused != nil {
		t.Errorf("with podstead run: %+v", d.files)
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

// TestRolloutOfSchedule: a pod with a schedule has no generations.
func TestRolloutOfSchedule(t *testing.T) {
	t.Parallel()
	w := factsOf(map[string]string{"web.toml": nightly + podText("busybox:1")})
	for name, call := range map[string]func() error{
		"rollout": func() error { _, err := w.rollout("web"); return err },
		"undo":    func() error { _, err := w.undo("web", 0); return err },
	} {
		var none *NoRolloutError
		if err := call(); !errors.As(err, &none) || none.Why != "it is started by its schedule" || !none.Scheduled {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLostDirectoryOfSchedules: a directory whose only files have schedules can be lost, also while no daemon runs. A file that was removed
// is no loss.
func TestLostDirectoryOfSchedules(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"while the daemon runs": false, "while no daemon runs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.scheduled = known
			if !known {
				b.write("web.toml", nightly+named("web", "a"))
				b.write("other.toml", nightly+named("other", "b"))
			}
			b.run()
			if !known {
				b.until("the files are known", func() bool {
					names, complete := b.set.Known()
					return complete && names["web"] && names["other"]
				})
				b.must(os.Rename(b.dir, b.dir+".away"))
				b.must(os.Mkdir(b.dir, 0o755))
			}
			b.until("the directory is lost", func() bool { _, complete := b.set.Known(); return !complete })
			b.untilEvent(api.EventPodsDirLost, "")
			if known {
				return
			}
			b.must(os.Remove(b.dir))
			b.must(os.Rename(b.dir+".away", b.dir))
			b.until("the files are known again", func() bool { _, complete := b.set.Known(); return complete })
			b.remove("web.toml")
			b.remove("other.toml")
			b.until("the files are removed", func() bool { names, complete := b.set.Known(); return complete && len(names) == 0 })
		})
	}
}
