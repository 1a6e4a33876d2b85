package podfiles

import (
	"context"
	"errors"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec/change"
)

// TestNewerImages: a file that has not changed is applied again if an image archive was replaced. The images are those of a generation,
// which is rolled back if it fails, and tried again with other images only.
func TestNewerImages(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.compare = effectOfImage
	b.run()
	apply := func(newest string, dryRun bool) Plan {
		t.Helper()
		if newest != "" {
			b.fakePods.set(func(f *fakePods) { f.newest = newest })
		}
		plan, err := b.apply("web", ".toml", updating("a", withinHour), dryRun)
		b.must(err)
		return plan
	}
	used := func(id string) {
		t.Helper()
		b.until("image "+id, func() bool {
			p := b.Pods()
			return len(p) == 1 && p[0].Facts.Container("app").Image.ID == id
		})
	}
	apply("", false)
	used("id-a")
	b.untilOutcomes("1 Ready, runs 1")
	if plan := apply("", false); plan.Outcome != api.PodUnchanged {
		t.Errorf("the same images: %+v", plan)
	}

	for _, dryRun := range []bool{true, false} {
		plan := apply("sha256:0123456789abcdef", dryRun)
		if plan.Outcome != api.PodConfigured || len(plan.Changes) != 1 || plan.Changes[0].Effect != change.RestartContainer ||
			plan.Changes[0].Values() != `"a" (:id-a) -> "a" (sha256:0123456789ab)` {
			t.Errorf("another image: %+v", plan)
		}
	}
	used("sha256:0123456789abcdef")
	b.untilOutcomes("1 Ready, 2 Ready, runs 2")
	if plan := apply("", false); plan.Outcome != api.PodUnchanged {
		t.Errorf("again: %+v", plan)
	}

	b.fakePods.set(func(f *fakePods) { f.becomes["bad"] = "crash" })
	apply("bad", false)
	b.untilOutcomes("1 Ready, 2 Ready, 3 RolledBack, runs 2")
	used("sha256:0123456789abcdef")
	b.untilEvent(api.EventRollbackCompleted, "generation 2 is ready")
	tried := len(b.history())
	if plan := apply("", false); plan.Outcome != api.PodUnchanged || plan.Instead == "" {
		t.Errorf("the images that were rolled back: %+v", plan)
	}
	b.looks(3)
	if got := b.history()[tried:]; len(got) > 0 {
		t.Errorf("the images that were rolled back were tried again: %v", got)
	}
	for _, dryRun := range []bool{true, false} {
		if plan := apply("sha256:0123456789abcdef", dryRun); plan.Outcome != api.PodUnchanged || plan.Instead != "" {
			t.Errorf("the images that run are back: %+v", plan)
		}
	}
	b.untilOutcomes("1 Ready, 2 Ready, 3 RolledBack, 4 Ready, runs 4")
	apply("bad", false)
	b.untilOutcomes("1 Ready, 2 Ready, 3 RolledBack, 4 Ready, 5 RolledBack, runs 4")
	used("sha256:0123456789abcdef")
	if plan := apply("good", false); plan.Outcome != api.PodConfigured || plan.Instead != "" {
		t.Errorf("other images: %+v", plan)
	}
	used("good")
	b.untilOutcomes("1 Ready, 2 Ready, 3 RolledBack, 4 Ready, 5 RolledBack, 6 Ready, runs 6")

	b.fakePods.set(func(f *fakePods) { f.stage = func(context.Context) error { return errors.New("disk full") } })
	for _, newest := range []string{"waiting", "good"} {
		apply(newest, false)
		if r, err := b.set.Rollout(b.Context(), "web"); err != nil || r.Newer != (newest == "waiting") {
			t.Errorf("the rollout waits for image %q: %t, %v", newest, r.Newer, err)
		}
	}
	b.fakePods.set(func(f *fakePods) { f.stage = nil })

	_, err := b.set.Undo(b.Context(), "web", 0, "test")
	b.must(err)
	used("sha256:0123456789abcdef")
	r, err := b.set.Undo(b.Context(), "web", 6, "test")
	b.must(err)
	if r.Newer || r.History.Instead != nil {
		t.Errorf("the file is carried out, and does not count as such: %+v", r)
	}
	used("good")

	b.fakePods.set(func(f *fakePods) { f.unreadable = errors.New("damaged") })
	if _, err := b.apply("web", ".toml", updating("a", withinHour), false); err == nil {
		t.Error("an archive that cannot be read is not reported")
	}
}
