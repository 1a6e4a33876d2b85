package podfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// updating returns a pod file with a rule for updates.
func updating(image, rule string) string {
	return "update = " + rule + "\n" + podText(image)
}

const (
	within100ms = `{ readyWithinSeconds = 0.1, minReadySeconds = 0 }`
	withinHour  = `{ readyWithinSeconds = 3600, minReadySeconds = 0 }`
	kept        = `{ onFailure = "keep", minReadySeconds = 0 }`
)

// newRollback returns a bench that keeps generations. The images a and d become ready.
func newRollback(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.store = NewHistoryDir(filepath.Join(t.TempDir(), "generations"))
	b.becomes["a"], b.becomes["d"] = "ready", "ready"
	return b
}

// outcomes returns the generations of pod web with their outcomes, and the one that runs; empty: the pod does not exist.
func (b *bench) outcomes() string {
	r, err := b.set.Rollout(b.Context(), "web")
	if err != nil {
		return ""
	}
	var list []string
	for _, g := range r.History.Generations {
		list = append(list, fmt.Sprintf("%d %s", g.Number, g.Outcome))
	}
	if g := r.History.Running(); g != nil {
		list = append(list, fmt.Sprintf("runs %d", g.Number))
	}
	return strings.Join(list, ", ")
}

func (b *bench) untilOutcomes(want string) {
	b.Helper()
	b.until("generations "+want, func() bool { return b.outcomes() == want })
}

// file returns what is shown for the first file; zero: there is none yet.
func (b *bench) file() (f File) {
	if files := b.set.Files(); len(files) > 0 {
		f = files[0]
	}
	return f
}

// TestRollback: a definition that fails is replaced by the last one that was ready, with its images, and not tried again until the file
// changes.
func TestRollback(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, becomes, rule, why string }{
		{"crash", "crash", withinHour, `container "app" exited with code 3`},
		{"pod failed", "fail", withinHour, "the pod failed"},
		{"not ready in time", "", within100ms, "the pod was not ready within 100ms: containers with unready status: [app]"},
	} {
		for kind, compare := range map[string]func(from, to *spec.Pod) []change.Change{
			"replace": replaceAlways, "redefine": effectOfImage,
		} {
			t.Run(test.name+" "+kind, func(t *testing.T) {
				b := newRollback(t)
				b.compare, b.becomes["b"] = compare, test.becomes
				b.write("web.toml", updating("a", withinHour))
				b.run()
				b.untilPods(map[string]string{"web": "a"})
				b.untilOutcomes("1 Ready, runs 1")
				b.write("web.toml", updating("b", test.rule))
				b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
				b.untilPods(map[string]string{"web": "a"})
				b.untilEvent(api.EventRollbackStarted, "Rolling back from generation 2 to 1: "+test.why)
				b.untilEvent(api.EventRollbackCompleted, "generation 1 is ready")
				b.fakePods.set(func(f *fakePods) {
					if got := f.staged[len(f.staged)-1].Images["app"].ID; got != "id-a" {
						t.Errorf("image of the rollback: got %q, want the one of generation 1", got)
					}
				})
				b.until("the file is shown", func() bool {
					return b.file().Reason == api.ReasonRolledBack &&
						text(b.file().Refused) == "generation 2 was rolled back: "+test.why+"; generation 1 runs"
				})
				b.fakePods.set(func(f *fakePods) {
					var rollsBack []bool
					for i := range f.staged {
						rollsBack = append(rollsBack, f.staged[i].RollsBack)
					}
					if !slices.Equal(rollsBack, []bool{false, true, false}) {
						t.Errorf("definitions that are rolled back if they fail: %v, want the update only", rollsBack)
					}
				})
				tried := len(b.history())
				b.end()
				b.run()
				b.passes(300 * time.Millisecond)
				if got := b.history()[tried:]; len(got) > 0 {
					t.Errorf("after a restart: %v", got)
				}
				b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
				b.write("web.toml", updating("d", withinHour))
				b.untilPods(map[string]string{"web": "d"})
				b.untilOutcomes("1 Ready, 2 RolledBack, 3 Ready, runs 3")
				b.until("the file is accepted", func() bool { return b.file().Path != "" && b.file().Reason == "" })
				b.remove("web.toml")
				b.untilPods(map[string]string{})
				b.until("images are released", func() bool {
					b.mu.Lock()
					defer b.mu.Unlock()
					return len(b.kept) == 0
				})
				b.end() // the set uses the store until then
				histories, _, err := b.store.Load()
				b.must(err)
				if len(histories) > 0 {
					t.Errorf("histories of deleted pods: %v", histories)
				}
			})
		}
	}
}

// TestNoRollback: a definition that fails is kept if the file does not request a rollback, or no definition was ready before.
func TestNoRollback(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, first, second, want string }{
		{"no rule", updating("a", withinHour), podText("b"), "1 Ready, 2 Failed, runs 2"},
		{"keep", updating("a", withinHour), updating("b", kept), "1 Ready, 2 Failed, runs 2"},
		{"never ready", updating("b", withinHour), updating("c", withinHour), "1 Failed, 2 Failed, runs 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newRollback(t)
			b.becomes["b"], b.becomes["c"] = "crash", "crash"
			b.write("web.toml", test.first)
			b.run()
			b.until("the first outcome", func() bool {
				return strings.HasSuffix(b.outcomes(), ", runs 1") && !strings.Contains(b.outcomes(), "Progressing")
			})
			b.write("web.toml", test.second)
			b.untilOutcomes(test.want)
			b.untilEvent(api.EventUpdateFailed, "Generation 2 failed and is kept")
			b.fakePods.set(func(f *fakePods) {
				next := *f.pods["web"]
				next.Outcome = lifecycle.Outcome{State: lifecycle.OutcomeComplete}
				f.pods["web"] = &next
			})
			b.untilEvent(api.EventUpdateCompleted, "generation 2 is ready")
		})
	}
}

// errCut ends a change as the end of the daemon does.
var errCut = errors.New("cut off")

// TestRollbackCutOff: the daemon is killed before or after each change that leads through an update and its rollback. Whenever that
// happens, the pod ends with the definition that was ready, and the failed one is not tried again once its failure was recorded.
func TestRollbackCutOff(t *testing.T) {
	t.Parallel()
	for kind, compare := range map[string]func(from, to *spec.Pod) []change.Change{"replace": replaceAlways, "redefine": effectOfImage} {
		for at := 1; ; at++ {
			b := newRollback(t)
			b.compare, b.becomes["b"] = compare, "crash"
			b.write("web.toml", updating("a", withinHour))
			b.run()
			b.untilOutcomes("1 Ready, runs 1")
			cut := make(chan struct{})
			calls, isCut := 0, false
			b.fakePods.set(func(f *fakePods) {
				f.cut = func(bool) error {
					if calls++; calls == at {
						isCut = true
						close(cut)
					}
					if isCut {
						return errCut
					}
					return nil
				}
			})
			b.write("web.toml", updating("b", withinHour))
			b.until("cut off, or rolled back", func() bool {
				select {
				case <-cut:
					return true
				default:
					return b.outcomes() == "1 Ready, 2 RolledBack, runs 1" && b.images()["web"] == "a"
				}
			})
			b.end()
			b.fakePods.set(func(f *fakePods) { f.cut = nil })
			b.run()
			b.untilPods(map[string]string{"web": "a"})
			b.until("rolled back", func() bool {
				return b.file().Reason == api.ReasonRolledBack && strings.HasSuffix(b.outcomes(), "RolledBack, runs 1")
			})
			if tries := count(b.history(), "b"); tries > 2 {
				t.Errorf("%s, cut %d: the failed definition was tried %d times: %v", kind, at, tries, b.history())
			}
			if !isCut {
				if at < 4 {
					t.Errorf("%s: only %d changes", kind, at-1)
				}
				break
			}
		}
	}
}

// count returns how many entries of a history end with an image.
func count(history []string, image string) int {
	n := 0
	for _, entry := range history {
		if strings.HasSuffix(entry, " "+image) {
			n++
		}
	}
	return n
}

// TestUndo: a person returns to an earlier generation, over a restart of the daemon and until the file changes.
func TestUndo(t *testing.T) {
	b := newRollback(t)
	b.becomes["b"], b.becomes["c"] = "ready", "ready"
	b.run()
	for i, image := range []string{"a", "b", "c"} {
		b.write("web.toml", updating(image, withinHour))
		b.untilPods(map[string]string{"web": image})
		b.until("ready", func() bool { return strings.HasSuffix(b.outcomes(), fmt.Sprintf("%d Ready, runs %d", i+1, i+1)) })
	}
	undo := func(to int) error {
		_, err := b.set.Undo(t.Context(), "web", to, "uid 0")
		return err
	}
	b.must(undo(0))
	b.untilPods(map[string]string{"web": "b"})
	b.untilOutcomes("1 Ready, 2 Ready, 3 Ready, runs 2")
	b.end()
	b.run()
	b.untilPods(map[string]string{"web": "b"})
	b.must(undo(0))
	b.untilPods(map[string]string{"web": "a"})
	for to, want := range map[int]string{
		0: "has no earlier generation that was ready", 1: "generation 1 of pod \"web\" runs already", 9: "has no generation 9",
	} {
		conflict, ok := errors.AsType[*ConflictError](undo(to))
		if !ok || !strings.Contains(conflict.Message, want) {
			t.Errorf("undo to %d: got %v, want %q", to, conflict, want)
		}
	}
	b.until("the file is shown", func() bool {
		return text(b.file().Refused) == "generation 1 runs instead, requested by uid 0; the file still has generation 3"
	})
	b.must(undo(3)) // the generation of the file
	b.untilEvent(api.EventRolloutResumed, "Pod file is carried out again, in place of generation 1 requested by uid 0")
	b.untilPods(map[string]string{"web": "c"})
	b.untilOutcomes("1 Ready, 2 Ready, 3 Ready, runs 3")
	if _, err := b.set.Undo(t.Context(), "db", 0, "uid 0"); err == nil {
		t.Error("a pod that does not exist was rolled back")
	}
}

// TestChangeAfterUndo: a change of the file, by hand or by a client, brings back what a person had undone. The plan and an event say so.
func TestChangeAfterUndo(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string]string{
		"changed": updating("c", withinHour), "comment": "# a comment\n" + updating("b", withinHour), "applied": updating("b", withinHour),
	} {
		t.Run(name, func(t *testing.T) {
			b := newRollback(t)
			b.becomes["b"], b.becomes["c"] = "ready", "ready"
			b.run()
			for i, image := range []string{"a", "b"} {
				b.write("web.toml", updating(image, withinHour))
				b.until("ready", func() bool { return strings.HasSuffix(b.outcomes(), fmt.Sprintf("%d Ready, runs %d", i+1, i+1)) })
			}
			_, err := b.set.Undo(t.Context(), "web", 0, "uid 0")
			b.must(err)
			b.untilPods(map[string]string{"web": "a"})
			if plan, err := b.apply("web", ".toml", changed, true); err != nil || plan.Undone != "generation 1, requested by uid 0" {
				t.Errorf("plan %+v, %v", plan, err)
			}
			if name == "applied" {
				_, err = b.apply("web", ".toml", changed, false)
				b.must(err)
			} else {
				b.write("web.toml", changed)
			}
			b.untilEvent(api.EventRolloutResumed, "Pod file is carried out again, in place of generation 1 requested by uid 0")
			b.until("carried out", func() bool { return b.images()["web"] != "a" })
			if plan, err := b.apply("web", ".toml", changed, true); err != nil || plan.Undone != "" {
				t.Errorf("plan afterwards %+v, %v", plan, err)
			}
		})
	}
}

// TestUndoOfPendingUpdate: an update that waits for its image is given up.
func TestUndoOfPendingUpdate(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.fakePods.set(func(f *fakePods) { f.becomes["b"] = "ready" })
	b.fakePods.set(func(f *fakePods) { f.stage = func(context.Context) error { return errors.New("no such image") } })
	b.write("web.toml", podText("b"))
	b.untilEvent(api.EventUpdateWaiting, "no such image")
	_, err := b.set.Undo(t.Context(), "web", 0, "uid 0")
	b.must(err)
	b.fakePods.set(func(f *fakePods) { f.stage = nil })
	b.until("given up", func() bool { return b.file().Reason == api.ReasonRolloutUndone })
	b.passes(200 * time.Millisecond)
	b.untilPods(map[string]string{"web": "a"})
	if slices.Contains(b.history(), "add web b") {
		t.Error("the update was carried out")
	}
}

// TestPinnedConfig: a rollback returns to the config maps and secrets that the definition had.
func TestPinnedConfig(t *testing.T) {
	text := func(image, rule string) string {
		return updating(image, rule) + `env.A.configMapKeyRef = { name = "conf", key = "k" }` + "\n" +
			`env.B.secretKeyRef = { name = "pass", key = "k" }` + "\n" +
			`env.C.configMapKeyRef = { name = "same", key = "k" }` + "\n"
	}
	host := &fakeValues{"old"}
	b := newRollback(t)
	b.host, b.becomes["b"] = host, ""
	b.write("web.toml", text("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.end()
	host.value = "new"
	b.run()
	b.write("web.toml", text("b", within100ms))
	b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
	b.untilPods(map[string]string{"web": "a"})
	p := b.Pods()[0].Pod
	if diff := cmp.Diff([]spec.ConfigMap{{Name: "conf", Data: map[string]string{"k": "old"}}}, p.ConfigMaps); diff != "" {
		t.Errorf("config maps (-want +got):\n%s", diff)
	}
	if len(p.Secrets) != 1 || p.Secrets[0].Name != "pass" || p.Secrets[0].Data["k"] != "old" {
		t.Errorf("secrets: got %d", len(p.Secrets))
	}
}

// fakeValues are config maps and secrets with one key, which have the same value, apart from the config map same.
type fakeValues struct{ value string }

func (f *fakeValues) ConfigMap(_ *spec.Pod, name string) (map[string][]byte, error) {
	if name == "same" {
		return map[string][]byte{"k": []byte("same")}, nil
	}
	return map[string][]byte{"k": []byte(f.value)}, nil
}

func (f *fakeValues) Secret(*spec.Pod, string) (map[string][]byte, error) {
	return map[string][]byte{"k": []byte(f.value)}, nil
}

// failingStore is a store whose disk fails.
type failingStore struct {
	Histories
	err error
}

func (f *failingStore) Save(h *History) error {
	if f.err != nil {
		return f.err
	}
	return f.Histories.Save(h)
}

// TestRollbackOnFullDisk: a rollback does not wait for the disk, and is saved later.
func TestRollbackOnFullDisk(t *testing.T) {
	b := newRollback(t)
	disk := &failingStore{Histories: b.store}
	b.store, b.becomes["b"] = disk, "crash"
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.set.turn.Lock()
	disk.err = errors.New("no space left on device")
	b.set.turn.Unlock()
	b.write("web.toml", updating("b", withinHour))
	b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
	b.untilPods(map[string]string{"web": "a"})
	b.set.turn.Lock()
	disk.err = nil
	b.set.turn.Unlock()
	b.until("saved", func() bool {
		b.set.turn.Lock()
		defer b.set.turn.Unlock()
		histories, _, err := disk.Load()
		return err == nil && histories["web"] != nil && histories["web"].Instead != nil
	})
}

// TestLostHistories: files are not carried out before it is known which of them have failed.
func TestLostHistories(t *testing.T) {
	b := newRollback(t)
	disk := &unreadableStore{Histories: b.store, err: errors.New("input/output error")}
	b.store = disk
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.passes(200 * time.Millisecond)
	if got := b.history(); len(got) > 0 {
		t.Errorf("carried out: %v", got)
	}
	b.set.turn.Lock()
	disk.err = nil
	b.set.turn.Unlock()
	b.untilPods(map[string]string{"web": "a"})
}

type unreadableStore struct {
	Histories
	err error
}

func (u *unreadableStore) Load() (map[string]*History, []error, error) {
	if u.err != nil {
		return nil, nil, u.err
	}
	return u.Histories.Load()
}

// TestApplyRolledBack: applying the text of a file that was rolled back changes nothing, and says why.
func TestApplyRolledBack(t *testing.T) {
	b := newRollback(t)
	b.becomes["b"] = "crash"
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	apply := func() Plan {
		t.Helper()
		file := acceptedFile(t, filepath.Join(b.dir, "web.toml"), updating("b", withinHour))
		plan, err := b.set.Apply(t.Context(), file, ApplyOptions{By: "uid 7"})
		b.must(err)
		return plan
	}
	if plan := apply(); plan.Outcome != api.PodConfigured || plan.Instead != "" {
		t.Errorf("first: %+v", plan)
	}
	b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
	b.untilPods(map[string]string{"web": "a"})
	if plan := apply(); plan.Outcome != api.PodUnchanged || !strings.HasPrefix(plan.Instead, "generation 2 was rolled back") {
		t.Errorf("again: %+v", plan)
	}
	r, err := b.set.Rollout(t.Context(), "web")
	b.must(err)
	if by := r.History.Find(2).By; by != "uid 7" {
		t.Errorf("requested by %q", by)
	}
}

// untilCarriedOut waits until the file is not shown as one that waits or is being prepared.
func (b *bench) untilCarriedOut() {
	b.Helper()
	b.until("the update is not shown as waiting any more", func() bool { return b.file().Refused == nil && b.file().Reason == "" })
}

// TestHeldIsKept: a pod that is held because its update failed is restarted if no earlier definition replaces it, as when its file is
// invalid, or defines something by then that waits.
func TestHeldIsKept(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]string{"invalid file": "name = 7\n", "another update waits": updating("c", withinHour)} {
		t.Run(name, func(t *testing.T) {
			b := newRollback(t)
			b.compare = effectOfImage
			b.write("web.toml", updating("a", withinHour))
			b.run()
			b.untilOutcomes("1 Ready, runs 1")
			b.write("web.toml", updating("b", withinHour))
			b.untilPods(map[string]string{"web": "b"})
			b.untilOutcomes("1 Ready, 2 Progressing, runs 2")
			b.fakePods.set(func(f *fakePods) { f.stage = func(context.Context) error { return errors.New("no such image") } })
			b.untilCarriedOut()
			b.write("web.toml", next)
			b.until("the next file is shown", func() bool { return b.file().Refused != nil || b.file().Reason != "" })
			b.fakePods.set(func(f *fakePods) {
				f.becomes["b"] = "crash"
				held := *f.pods["web"]
				f.runs(&held, supervisor.Staged{RollsBack: true})
				f.pods["web"] = &held
			})
			b.until("the pod is kept", func() bool { return slices.Contains(b.history(), "keep web") })
			b.untilPods(map[string]string{"web": "b"})
		})
	}
}

// TestHeldIsReplaced: a pod that is held because its update failed is not restarted while another definition is to replace it, and is
// restarted if that cannot run.
func TestHeldIsReplaced(t *testing.T) {
	t.Parallel()
	crash := func(b *bench) {
		b.fakePods.set(func(f *fakePods) {
			f.becomes["b"] = "crash"
			held := *f.pods["web"]
			f.runs(&held, supervisor.Staged{RollsBack: true})
			f.pods["web"] = &held
		})
	}
	notKept := func(b *bench) {
		b.looks(5)
		if history := b.history(); slices.Contains(history, "keep web") {
			b.Errorf("the pod was restarted: %v", history)
		}
	}
	for name, test := range map[string]func(*bench){
		"rollback is refused": func(b *bench) {
			refuse := func(bool) error { return &supervisor.RefusedError{Pod: "web"} }
			b.fakePods.set(func(f *fakePods) { f.cut = refuse })
			crash(b)
			b.until("the pod is kept", func() bool { return slices.Contains(b.history(), "keep web") })
		},
		"file is changed meanwhile": func(b *bench) {
			release := make(chan struct{})
			b.fakePods.set(func(f *fakePods) {
				f.stage = func(context.Context) error {
					<-release
					return nil
				}
			})
			b.write("web.toml", updating("d", withinHour))
			b.until("the update is being prepared", func() bool { return b.file().Refused != nil })
			crash(b)
			notKept(b)
			close(release)
			b.untilPods(map[string]string{"web": "d"})
			notKept(b)
		},
		"suspended": func(b *bench) {
			b.set.Suspend()
			crash(b)
			b.remove("web.toml")
			notKept(b)
		},
		"directory is lost": func(b *bench) {
			b.must(os.Rename(b.dir, b.dir+"-away"))
			crash(b)
			notKept(b)
			b.must(os.Rename(b.dir+"-away", b.dir))
			b.untilPods(map[string]string{"web": "a"})
			notKept(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRollback(t)
			b.compare = effectOfImage
			b.times.settle = time.Hour
			b.write("web.toml", updating("a", withinHour))
			b.run()
			b.untilOutcomes("1 Ready, runs 1")
			b.write("web.toml", updating("b", withinHour))
			b.untilOutcomes("1 Ready, 2 Progressing, runs 2")
			b.untilPods(map[string]string{"web": "b"})
			b.untilCarriedOut()
			test(b)
		})
	}
}

// TestRetryOfRolledBack: a person has a file tried again that was rolled back.
func TestRetryOfRolledBack(t *testing.T) {
	b := newRollback(t)
	b.becomes["b"] = "crash"
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.write("web.toml", updating("b", withinHour))
	b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
	b.untilPods(map[string]string{"web": "a"})
	b.fakePods.set(func(f *fakePods) { f.becomes["b"] = "ready" })
	_, err := b.set.Undo(t.Context(), "web", 2, "uid 0")
	b.must(err)
	b.untilOutcomes("1 Ready, 2 RolledBack, 3 Ready, runs 3")
	b.untilPods(map[string]string{"web": "b"})
	r, err := b.set.Rollout(t.Context(), "web")
	b.must(err)
	if len(r.History.Find(3).Changes) == 0 {
		t.Error("the changes from what ran before are missing")
	}
}

// TestCrashAfterReady: a definition that is ready for a moment and then fails is rolled back; one that stays ready is not.
func TestCrashAfterReady(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.becomes["b"] = "ready"
	b.write("web.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.write("web.toml", updating("b", `{ minReadySeconds = 3600 }`))
	b.until("generation 2 is ready", func() bool {
		r, err := b.set.Rollout(t.Context(), "web")
		return err == nil && len(r.History.Generations) == 2 && !r.History.Newest().ReadyAt.IsZero()
	})
	b.untilOutcomes("1 Ready, 2 Progressing, runs 2")
	b.fakePods.set(func(f *fakePods) {
		f.becomes["b"] = "crash"
		next := *f.pods["web"]
		f.runs(&next, supervisor.Staged{RollsBack: true})
		f.pods["web"] = &next
	})
	b.untilOutcomes("1 Ready, 2 RolledBack, runs 1")
	b.untilPods(map[string]string{"web": "a"})
	b.fakePods.set(func(f *fakePods) { f.becomes["b"] = "ready" })
	b.write("web.toml", updating("b", `{ minReadySeconds = 0.3 }`))
	b.untilOutcomes("1 Ready, 2 RolledBack, 3 Ready, runs 3")
	b.write("web.toml", updating("a", `{ minReadySeconds = 3600 }`))
	b.until("generation 4 is ready", func() bool {
		r, err := b.set.Rollout(t.Context(), "web")
		return err == nil && r.History.Last == 4 && !r.History.Newest().ReadyAt.IsZero()
	})
	b.write("web.toml", updating("d", withinHour)) // a definition that was ready is no failure, although it was changed soon
	b.untilOutcomes("1 Ready, 2 RolledBack, 3 Ready, 4 Ready, 5 Ready, runs 5")
}

// TestForgottenAtEnd: nothing of a pod is left that is deleted just before the daemon ends.
func TestForgottenAtEnd(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.write("web.toml", updating("a", withinHour))
	b.write("db.toml", updating("a", withinHour))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.remove("web.toml")
	b.untilPods(map[string]string{"db": "a"})
	b.end()
	histories, _, err := b.store.Load()
	b.must(err)
	kept, err := b.KeptImages(t.Context())
	b.must(err)
	if histories["web"] != nil || histories["db"] == nil || !slices.Equal(kept, []string{"db"}) {
		t.Errorf("histories %v, images kept for %v", histories, kept)
	}
}
