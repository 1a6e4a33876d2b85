package explain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/hooks"
	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// world is a supervisor with the fake runtime, in a synctest bubble.
type world struct {
	t      *testing.T
	engine *fakeruntime.Runtime
	dir    string
	pod    *spec.Pod
	boot   string
	// unclean is the boot that ended without a shutdown; empty: none is known.
	unclean string
	begun   time.Time
	fails   atomic.Pointer[failure] // returned by the calls of a method, or by one if slow is true; nil: none fails
	probe   atomic.Pointer[string]  // the script of every probe and hook
	slow    atomic.Bool             // a start of a container takes 10 s
	fetch   *lifecycle.Progress     // the progress of every pull or import, which never end; nil: they take no time
	log     []string                // the last lines of the log of each failed run

	architecture string // of the image of app; empty: not known
	*supervisor.Supervisor
}

type failure struct {
	method string
	why    lifecycle.Failure
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), boot: "1", begun: time.Now()}
	w.engine = fakeruntime.New(fakeruntime.Options{
		Before: func(ctx context.Context, c fakeruntime.Call) error {
			if f := w.fails.Load(); f != nil && f.method == c.Method {
				if w.slow.Load() {
					w.fails.Store(nil)
				}
				return f.why
			}
			if c.Method == "StartContainer" && w.slow.Load() {
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		},
		Fetch: func(ctx context.Context, _ *spec.Pod, _ string, progress func(lifecycle.Progress)) error {
			for w.fetch != nil {
				progress(*w.fetch)
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		},
		Exec: func(lifecycle.Ref, []string) (fakeruntime.Program, bool) {
			return fakeruntime.Read([]string{"sh", "-c", *w.probe.Load()}), true
		},
	})
	w.probes("true")
	w.start()
	t.Cleanup(w.leave)
	return w
}

func (w *world) probes(script string) { w.probe.Store(&script) }

func (w *world) now() lifecycle.Instant {
	return lifecycle.Instant{Boot: w.boot, Mono: time.Since(w.begun), Wall: time.Now()}
}

func (w *world) start() {
	store, err := state.NewDir(filepath.Join(w.dir, "pods"))
	if err != nil {
		w.t.Fatal(err)
	}
	journal, err := event.NewDirJournal(filepath.Join(w.dir, "events"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.Supervisor = supervisor.New(context.WithoutCancel(w.t.Context()), supervisor.Options{
		Runtime: w.engine, Prober: probes.New(w.engine, w.now, probes.Options{}), Hooks: hooks.New(w.engine, nil),
		UncleanBoot: w.unclean, Store: store, Journal: journal, Clock: w.now, Events: 24, // so few that the journal is needed
	})
	if err := w.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add() {
	if _, err := w.Add(w.pod, state.Owner{By: "test"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) leave() {
	if err := w.Leave(context.WithoutCancel(w.t.Context())); err != nil {
		w.t.Error(err)
	}
}

func (w *world) stop(o supervisor.StopOptions) {
	o.By = "podstead run, pid 7, uid 0"
	if err := w.Stop(w.t.Context(), "web", o); err != nil {
		w.t.Fatal(err)
	}
}

// sleep lets time pass in the bubble.
func (*world) sleep(d time.Duration) { time.Sleep(d) }

// explanation explains the pod as it is now.
func (w *world) explanation() api.Explanation {
	synctest.Wait()
	events, err := w.History(w.t.Context(), "web")
	if err != nil {
		w.t.Fatal(err)
	}
	if s, exists := w.Pod("web"); exists {
		if w.architecture != "" {
			s.Facts.Containers = maps.Clone(s.Facts.Containers)
			app := *s.Facts.Containers["app"]
			app.Newest.Architecture = w.architecture
			s.Facts.Containers["app"] = &app
		}
		e := explain.ForPod(&s, events, w.now())
		for i := range e.Containers {
			explain.AddLog(&s, &e.Containers[i], w.log, 3)
		}
		return e
	}
	e, known := explain.ForDeletedPod(events)
	if !known {
		w.t.Fatal("no event of the pod is stored")
	}
	return e
}

// json is an explanation as a program gets it. The UID of the pod is random.
func (w *world) json(e *api.Explanation) string {
	explain.Render(e, w.now().Wall.UTC())
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), e.UID, "UID") + "\n"
}

// report renders an explanation. A bubble begins at midnight, so its times are those since the beginning.
func (w *world) report(e *api.Explanation) string {
	now := w.now().Wall.UTC()
	explain.Render(e, now)
	return strings.ReplaceAll(fmt.Sprintf("healthy: %v\n%s", e.Healthy, explain.Report(e, now)), e.UID, "UID")
}
