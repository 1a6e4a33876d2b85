package podfiles

import (
	"context"
	"errors"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestReadyWhileUpdateWaits: a definition that becomes ready after its file has changed is one that a rollback can return to.
func TestReadyWhileUpdateWaits(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.becomes["a"], b.becomes["b"] = "", "crash"
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Progressing, runs 1")
	b.fakePods.set(func(f *fakePods) { f.stage = func(context.Context) error { return errors.New("no such image") } })
	b.write("web.toml", updating("b", withinHour))
	b.untilEvent(api.EventUpdateWaiting, "no such image")
	b.fakePods.set(func(f *fakePods) {
		f.pods["web"].Outcome = lifecycle.Outcome{State: lifecycle.OutcomeComplete}
		f.becomes["a"] = "ready"
	})
	b.untilOutcomes("1 Ready, runs 1")
	b.fakePods.set(func(f *fakePods) { f.stage = nil })
	b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
	b.untilPods(map[string]string{"web": "a"})
}
