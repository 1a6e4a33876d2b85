package podfiles

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// TestRefusedBeforeChange: a pod that was refused while another pod changed is tried again, with a delay that grows.
func TestRefusedBeforeChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.set = New(b.dir, b.fakePods, Options{})
	path := filepath.Join(b.dir, "web.toml")
	w := &b.set.facts
	w.contents[path], w.present[path] = accept(path, []byte(podText("a"))), true
	step := w.plan().steps[0]
	before := w.fingerprint()
	w.pods = map[string]pod{"db": running("db", "db.toml", "a")} // the step does not know of it
	refused := &supervisor.RefusedError{Pod: "web"}
	for range 2 {
		b.set.finish(t.Context(), &worker{step: step, pods: before}, refused)
	}
	a := w.attempts["web"]
	if a.pods != before || !errors.Is(a.err, refused) || a.count != 2 {
		t.Fatalf("attempt %+v", a)
	}
	w.now = a.changed.Add(-time.Nanosecond)
	if r := w.plan(); len(r.steps) != 0 || r.again != a.changed {
		t.Errorf("too early: steps %q, again at %v", stepsOf(r.steps), r.again)
	}
	w.now = a.changed
	if r := w.plan(); stepsOf(r.steps) != "add web" {
		t.Errorf("after the delay: steps %q", stepsOf(r.steps))
	}
	if wait := a.next.Sub(a.changed); wait != 18*b.set.times.retry/10 {
		t.Errorf("without a change it waits %v longer", wait)
	}
}

// TestForget: a listing forgets what is known about pods and files that do not exist any more, and only that.
func TestForget(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.times.quiet = 0
	b.set = New(b.dir, b.fakePods, Options{times: &b.times})
	path := func(name string) string { return filepath.Join(b.dir, name+".toml") }
	_, err := b.AddStaged(accept(path("db"), []byte(podText("a"))).pod, state.Owner{File: path("db")}, supervisor.Staged{})
	b.must(err)
	for _, name := range []string{"web", "db", "old"} {
		b.set.facts.attempts[name] = attempt{count: 1}
		b.set.facts.confirmed[path(name)] = true
		b.set.facts.applied[path(name)] = applied{digest: [32]byte{1}}
		b.set.compared[name] = comparison{}
	}
	b.must(b.set.look(t.Context(), true, nil))
	w := &b.set.facts
	if w.attempts["web"].count+w.attempts["db"].count != 2 || len(w.attempts) != 2 {
		t.Errorf("attempts %v", w.attempts)
	}
	if !w.confirmed[path("db")] || len(w.confirmed) != 1 {
		t.Errorf("confirmed %v, want db.toml, which a pod follows", w.confirmed)
	}
	if _, kept := w.applied[path("web")]; !kept || len(w.applied) != 1 || len(b.set.compared) != 1 {
		t.Errorf("applied %v, compared %v", w.applied, b.set.compared)
	}
}
