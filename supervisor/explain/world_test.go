package explain_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// world is a supervisor on an engine in memory, in a bubble.
type world struct {
	t      *testing.T
	engine *fakeruntime.Runtime
	dir    string
	pod    *spec.Pod
	boot   string
	begun  time.Time
	fails  atomic.Pointer[failure] // what calls of a method end in
	probe  atomic.Pointer[string]  // the script of every probe and hook
	slow   atomic.Bool             // a start of a container takes 10 s
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
		Store: store, Journal: journal, Clock: w.now, Events: 24, // a ring that soon forgets, but not what happens while the disk is busy
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
	o.By = "podstead stop, pid 7, uid 0"
	if err := w.Stop(w.t.Context(), "web", o); err != nil {
		w.t.Fatal(err)
	}
}

// story is the story of the pod now.
func (w *world) story() explain.Story {
	synctest.Wait()
	events, err := w.History(w.t.Context(), "web")
	if err != nil {
		w.t.Fatal(err)
	}
	s, there := w.Pod("web")
	if there {
		return explain.Of(&s, events, w.now())
	}
	gone, known := explain.Gone(events)
	if !known {
		w.t.Fatal("nothing is known of the pod")
	}
	return gone
}

// text writes a story down, with times since the beginning.
func (w *world) text(s explain.Story) string {
	var b strings.Builder
	line := func(indent string, step explain.Step) {
		fmt.Fprintf(&b, "%s%v %s", indent, step.Time.Sub(w.begun).Round(time.Millisecond), step.Text)
		if step.Seen > 0 {
			fmt.Fprintf(&b, " (%d times)", step.Seen)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s %s. (well: %v)\n", s.Pod, s.Summary, s.Well)
	for _, c := range s.Containers {
		fmt.Fprintf(&b, "%s, %d restarts. %s", c.Name, c.Restarts, c.Now)
		if !c.Next.IsZero() {
			fmt.Fprintf(&b, " Next: %v", c.Next.Sub(w.begun).Round(time.Millisecond))
		}
		b.WriteString("\n")
		for _, r := range c.Told {
			fmt.Fprintf(&b, "  because %s\n", r.Why)
			for _, step := range r.Steps {
				line("    ", step)
			}
		}
	}
	for _, step := range s.Steps {
		line("", step)
	}
	return b.String()
}
