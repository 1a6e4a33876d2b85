package podfiles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// testTimeout is far longer than anything takes here, even on a loaded host.
const testTimeout = time.Minute

var fast = times{
	quiet: 20 * time.Millisecond, burst: 200 * time.Millisecond, halfWritten: 100 * time.Millisecond, removal: 100 * time.Millisecond,
	relist: time.Second, unnotified: 100 * time.Millisecond, settle: 300 * time.Millisecond, retry: 50 * time.Millisecond,
	maxRetry: time.Second,
}

// bench is a set that runs, with a directory and pods of a test.
type bench struct {
	*testing.T
	*fakePods
	dir   string
	times times
	set   *Set
	ring  *event.Ring
	end   func()
	store Histories
	host  Values

	accept    func(path string, text []byte) *content
	scheduled bool // see [Options]
}

// newBench returns a bench whose set does not run yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pods.d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, fakePods: newFakePods(), dir: dir, times: fast, ring: event.NewRing(10_000)}
}

// run runs the set until the test ends or end is called.
func (b *bench) run() {
	b.Helper()
	b.set = New(b.dir, b.fakePods, Options{
		Events: b.ring, Histories: b.store, Values: b.host, Images: b.fakePods, times: &b.times, compare: b.compare, accept: b.accept,
		Scheduled: b.scheduled,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.set.Run(ctx) }()
	b.end = func() {
		cancel()
		if done == nil {
			return
		}
		if err := <-done; err != nil {
			b.Errorf("run: %v", err)
		}
		done = nil
	}
	b.Cleanup(b.end)
}

func (b *bench) write(name, text string) {
	b.Helper()
	b.must(os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600))
}

func (b *bench) remove(name string) {
	b.Helper()
	b.must(os.Remove(filepath.Join(b.dir, name)))
}

func (b *bench) rename(from, to string) {
	b.Helper()
	b.must(os.Rename(filepath.Join(b.dir, from), filepath.Join(b.dir, to)))
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// until waits for a condition, and fails with what is shown then.
func (b *bench) until(what string, holds func() bool) {
	b.Helper()
	for deadline := time.Now().Add(testTimeout); !holds(); {
		files, pods := b.set.Changed(), b.Changed()
		select {
		case <-files:
		case <-pods:
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			b.Fatalf("not reached: %s\npods %v\nfiles %+v\nhistory %v", what, b.images(), b.set.Files(), b.history())
		}
	}
}

// untilPods waits until these pods exist, with these images.
func (b *bench) untilPods(want map[string]string) {
	b.Helper()
	b.until(fmt.Sprint("pods ", want), func() bool { return maps.Equal(b.images(), want) })
}

// looks waits until the set has listed the directory n times more.
func (b *bench) looks(n int) {
	b.Helper()
	for range n {
		at := b.lookedAt()
		b.set.wake()
		b.until("another comparison", func() bool { return b.lookedAt().After(at) })
	}
}

func (b *bench) lookedAt() time.Time {
	b.set.turn.Lock()
	defer b.set.turn.Unlock()
	return b.set.facts.now
}

// passes waits until a time has passed in which the set listed the directory.
func (b *bench) passes(d time.Duration) {
	b.Helper()
	for start := time.Now(); time.Since(start) < d; {
		b.looks(1)
	}
}

func (b *bench) untilEvent(kind api.EventKind, text string) event.Event {
	b.Helper()
	var found event.Event
	b.until(string(kind)+" "+text, func() bool {
		events, _ := b.ring.Since(0)
		i := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == kind && strings.Contains(e.Message, text) })
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	})
	return found
}

func (b *bench) count(kind api.EventKind) int {
	events, _ := b.ring.Since(0)
	n := 0
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// replaceAlways is a comparison by which any difference replaces the pod.
func replaceAlways(from, to *spec.Pod) []change.Change {
	if from.Hash == to.Hash && from.Name == to.Name {
		return nil
	}
	return []change.Change{{Effect: change.ReplacePod}}
}

// effectOfImage is a comparison by which another image restarts a container.
func effectOfImage(from, to *spec.Pod) []change.Change {
	if from.Containers[0].Image == to.Containers[0].Image {
		return nil
	}
	return []change.Change{{Path: "containers[0].image", Effect: change.RestartContainer}}
}

func TestFilesBecomePods(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.write("db.json",
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}`)
	for _, name := range []string{".hidden.toml", "web.toml~", ".web.toml.swp", "4913", "web.toml.bak", "README"} {
		b.write(name, podText("never"))
	}
	b.must(os.Mkdir(filepath.Join(b.dir, "sub.toml"), 0o755))
	b.run()
	b.untilPods(map[string]string{"web": "a", "db": "x"})
	for _, p := range b.Pods() {
		if want := filepath.Join(b.dir, p.Pod.Name+filepath.Ext(p.Owner.File)); p.Owner.File != want {
			t.Errorf("pod %s follows %s, want %s", p.Pod.Name, p.Owner.File, want)
		}
	}
	b.write("web.toml", podText("b"))
	b.untilPods(map[string]string{"web": "b", "db": "x"})
	b.remove("db.json")
	b.untilPods(map[string]string{"web": "b"})
	b.remove("web.toml")
	b.untilPods(map[string]string{})
}

// TestRestartOfTheDaemon: the set continues from the pods that exist, whatever changed meanwhile.
func TestRestartOfTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"web", "db", "log"} {
		b.write(name+".toml", podText("a"))
	}
	b.run()
	b.untilPods(map[string]string{"web": "a", "db": "a", "log": "a"})
	b.end()
	b.write("web.toml", podText("b"))
	b.remove("db.toml")
	b.write("new.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "b", "log": "a", "new": "a"})
	if history := b.history(); slices.Contains(history, "stop log delete=true") {
		t.Errorf("the unchanged pod was stopped: %v", history)
	}
}

// TestEditors: however an editor saves a file, its pod is not deleted and gets the new definition.
func TestEditors(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(b *bench, text string){
		"write and rename": func(b *bench, text string) {
			b.write(".web.toml.tmp", text)
			b.rename(".web.toml.tmp", "web.toml")
		},
		"truncate and write": func(b *bench, text string) { b.write("web.toml", text) },
		"vim with backup": func(b *bench, text string) {
			b.write("4913", "")
			b.remove("4913")
			b.rename("web.toml", "web.toml~")
			b.looks(1)
			b.write("web.toml", text)
			b.remove("web.toml~")
		},
		"in pieces": func(b *bench, text string) {
			f, err := os.Create(filepath.Join(b.dir, "web.toml"))
			b.must(err)
			defer f.Close()
			for _, piece := range strings.SplitAfter(text, "\n") {
				_, err := f.WriteString(piece)
				b.must(err)
				b.looks(1)
			}
		},
		"rename to another name": func(b *bench, text string) {
			b.rename("web.toml", "site.toml")
			b.looks(1)
			b.write("site.toml", text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.times.removal, b.times.halfWritten = time.Hour, time.Hour // an editor may be slow here
			b.compare = effectOfImage
			b.write("web.toml", named("web", "a"))
			b.write("other.toml", podText("x"))
			b.run()
			b.untilPods(map[string]string{"web": "a", "other": "x"})
			save(b, named("web", "b"))
			b.untilPods(map[string]string{"web": "b", "other": "x"})
			if history := b.history(); slices.Contains(history, "stop web delete=true") {
				t.Errorf("the pod was deleted: %v", history)
			}
			if n := b.count(api.EventFileInvalid); n > 0 {
				t.Errorf("a half-written file was reported: %d events", n)
			}
		})
	}
}

func TestInvalidFileChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	b.write("web.toml", "\n\nx = 1\n"+podText("b"))
	b.write("new.toml", "[[containers]]\nimage = 1\n")
	e := b.untilEvent(api.EventFileInvalid, "the pod keeps running: "+filepath.Join(b.dir, "web.toml")+":3:1: x: ")
	if e.Pod != "web" || e.UID != b.Pods()[0].Facts.UID {
		t.Errorf("event of pod %q with UID %q, want those of the pod", e.Pod, e.UID)
	}
	b.untilEvent(api.EventFileInvalid, "no pod is started")
	if files := b.set.Files(); len(files) != 2 || files[0].Pod != "new" || files[0].Reason != api.ReasonInvalidFile ||
		len(files[1].Problems.Errors()) == 0 {
		t.Errorf("files %+v", files)
	}
	b.write("web.toml", podText("a"))
	b.untilEvent(api.EventFileAccepted, "web.toml")
	if want := []string{"add web a"}; !slices.Equal(b.history(), want) {
		t.Errorf("changes %v, want %v", b.history(), want)
	}
}

func TestNameConflicts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.AddStaged(accept("/run.toml", []byte(named("web", "run"))).pod, state.Owner{By: "podstead run, pid 4711, uid 0"},
		supervisor.Staged{})
	b.must(err)
	b.write("web.toml", podText("a"))
	b.run()
	b.untilEvent(api.EventFileRejected, "created by podstead run, pid 4711, uid 0, so "+filepath.Join(b.dir, "web.toml"))
	b.must(b.Stop(t.Context(), "web", supervisor.StopOptions{Delete: true}))
	b.untilPods(map[string]string{"web": "a"})
	b.untilEvent(api.EventFileAccepted, "web.toml")
	b.write("a.toml", named("web", "b"))
	b.untilEvent(api.EventFileRejected, filepath.Join(b.dir, "a.toml")+" and "+filepath.Join(b.dir, "web.toml"))
	b.untilPods(map[string]string{"web": "a"})
	b.remove("web.toml")
	b.untilPods(map[string]string{"web": "b"})
}

// TestStopHolds: the pod that a person has stopped does not start because its file changes.
func TestStopHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	b.must(b.Stop(t.Context(), "web", supervisor.StopOptions{By: "a test"}))
	b.write("web.toml", podText("b"))
	b.until("waits", func() bool { files := b.set.Files(); return len(files) == 1 && files[0].Refused != nil })
	b.passes(200 * time.Millisecond)
	b.untilPods(map[string]string{"web": "a"})
	b.fakePods.set(func(f *fakePods) { f.pods["web"].Facts.Stop = lifecycle.Stop{} })
	b.untilPods(map[string]string{"web": "b"})
}

// TestSuspend: nothing is carried out for files of a set that is suspended, and what was being prepared is cancelled.
func TestSuspend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	staging, ended := make(chan struct{}, 100), false
	b.fakePods.set(func(f *fakePods) {
		f.stage = func(ctx context.Context) error {
			staging <- struct{}{}
			<-ctx.Done()
			ended = true
			return ctx.Err()
		}
	})
	b.write("web.toml", podText("b"))
	<-staging
	b.set.Suspend()
	if !ended {
		t.Error("a step is in progress after Suspend")
	}
	b.must(b.Stop(t.Context(), "web", supervisor.StopOptions{Delete: true}))
	b.passes(200 * time.Millisecond)
	b.untilPods(map[string]string{})
}

// TestHangingPull: an update that waits for its image is shown, delays no other pod, and gives way to a newer edit.
func TestHangingPull(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	b.fakePods.set(func(f *fakePods) {
		f.stage = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
	})
	b.write("web.toml", podText("hangs"))
	b.until("the pull is shown", func() bool {
		files := b.set.Files()
		return len(files) == 1 && text(files[0].Refused) == "update is being prepared, pulling the image of container app" &&
			files[0].Reason == ""
	})
	b.write("db.toml", podText("x"))
	b.untilPods(map[string]string{"web": "a", "db": "x"})
	b.fakePods.set(func(f *fakePods) { f.stage = nil })
	b.write("web.toml", podText("c"))
	b.untilPods(map[string]string{"web": "c", "db": "x"})
	if slices.Contains(b.history(), "add web hangs") {
		t.Errorf("the outdated content was carried out: %v", b.history())
	}
}

// TestDeadRegistry: an update whose image cannot be pulled waits, is reported once, and is repeated.
func TestDeadRegistry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	tries := 0
	b.fakePods.set(func(f *fakePods) {
		f.stage = func(context.Context) error {
			if tries++; tries > 3 {
				return nil
			}
			return errors.New(`pull image "b": connection refused`)
		}
	})
	b.write("web.toml", podText("b"))
	b.untilEvent(api.EventUpdateWaiting, `pull image "b": connection refused`)
	b.untilPods(map[string]string{"web": "b"})
	b.untilEvent(api.EventFileAccepted, "web.toml")
	if n := b.count(api.EventUpdateWaiting); n != 1 {
		t.Errorf("%d events for one cause", n)
	}
}

// TestSlowDeletion: during a replacement the file changes again. The newest content follows the old pod.
func TestSlowDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.slow["web"] = true
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	b.write("web.toml", podText("b"))
	b.until("stopping", func() bool { return slices.Contains(b.history(), "stop web delete=true") })
	b.write("web.toml", podText("c"))
	b.until("the new content was read", func() bool {
		b.set.turn.Lock()
		defer b.set.turn.Unlock()
		c := b.set.facts.contents[filepath.Join(b.dir, "web.toml")]
		return c != nil && c.pod != nil && c.pod.Containers[0].Image == "c" && len(b.set.workers) == 0
	})
	b.deleted("web")
	b.untilPods(map[string]string{"web": "c"})
	if slices.Contains(b.history(), "add web b") {
		t.Errorf("the outdated content was carried out: %v", b.history())
	}
}

func TestAdmissionRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("db.toml", podText("x"))
	b.write("web.toml", podText("a"))
	b.admit = func(pod *spec.Pod) error {
		if pod.Name == "web" && b.pods["db"] != nil {
			return &supervisor.RefusedError{Pod: "web", Refusals: []lifecycle.Refusal{{Message: "host port 80/TCP is in use by pod db"}}}
		}
		if pod.Name == "db" && b.pods["web"] != nil {
			return errors.New("not in this test")
		}
		return nil
	}
	b.write("web.toml", "x = 1")
	b.run()
	b.untilPods(map[string]string{"db": "x"})
	b.write("web.toml", podText("a"))
	b.until("rejected", func() bool {
		files := b.set.Files()
		return len(files) == 2 && files[1].Reason == api.ReasonRejected && strings.Contains(text(files[1].Refused), "host port 80") &&
			files[1].Definition != nil && files[1].Definition.Name == "web" && !files[1].Next.IsZero()
	})
	b.remove("db.toml")
	b.untilPods(map[string]string{"web": "a"})
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := b.staged[len(b.staged)-1]; len(last.Refused) != 1 {
		t.Errorf("staged %+v, want why the attempt before was rejected, so that it is not reported again", last)
	}
}

// TestKilledDuringReplacement: a daemon that was killed between the stop of the old pod and the start of the new one leaves the rest to
// the next daemon.
func TestKilledDuringReplacement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.slow["web"] = true
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	b.write("web.toml", podText("b"))
	b.until("stopping", func() bool { return slices.Contains(b.history(), "stop web delete=true") })
	b.end()
	b.run()
	b.looks(2)
	b.untilPods(map[string]string{"web": "a"})
	b.deleted("web")
	b.untilPods(map[string]string{"web": "b"})
	if want := []string{"add web a", "stop web delete=true", "deleted web", "add web b"}; !slices.Equal(b.history(), want) {
		t.Errorf("changes %v, want %v", b.history(), want)
	}
}
