package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/spec"
)

// testTimeout bounds what a test waits for.
const testTimeout = 2 * time.Minute

// fakeDaemon serves a daemon's responses, and returns a client of it.
func fakeDaemon(t *testing.T, routes map[string]http.HandlerFunc) *client.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "live") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, handle := range routes {
		mux.HandleFunc(pattern, handle)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: testTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	c := client.New(socket, "podstead")
	t.Cleanup(c.Close)
	return c
}

// sends responds with values, one in each line.
func sends(values ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, v := range values {
			_ = json.NewEncoder(w).Encode(v) // the client is gone if that fails
		}
	}
}

func added(name string) api.PodChange {
	return api.PodChange{Type: api.Added, Object: api.Pod{Metadata: api.Metadata{Name: name, UID: name}}}
}

// TestFirstList checks that the first list has all pods, and that errors of the daemon are shown, after which the list is requested again.
func TestFirstList(t *testing.T) {
	t.Parallel()
	var watches atomic.Int32
	s := New(fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods": func(w http.ResponseWriter, r *http.Request) {
			if watches.Add(1) == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				sends(&api.Error{Status: http.StatusInternalServerError, Message: "broken"})(w, r)
				return
			}
			sends(added("a"))(w, r)
			_ = http.NewResponseController(w).Flush()
			if !pause(r.Context(), 4*settle) { // the list of one pod would be shown
				return
			}
			sends(added("b"), api.PodChange{Type: api.Listed})(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"GET /v1/why":   sends(api.ExplanationList{}),
		"GET /v1/stats": sends(api.StatsSummary{}),
	}))
	s.failure = 10 * time.Millisecond
	var got []string
	complete := errors.New("the list is complete")
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	err := s.Pods(ctx, time.UTC, func(v any) error {
		switch v := v.(type) {
		case Failed:
			got = append(got, v.Error)
		case List:
			for _, p := range v.Pods {
				got = append(got, p.Name)
			}
			return complete
		}
		return nil
	})
	if !errors.Is(err, complete) || !slices.Equal(got, []string{"broken", "a", "b"}) {
		t.Errorf("%v: %q", err, got)
	}
}

// TestExits checks that last exits have the log of the run that exited, cut and without hidden characters, and no command for a name that
// is not valid. An error of a log is a part of the answer.
func TestExits(t *testing.T) {
	t.Parallel()
	container := func(name string, state api.ExplainedContainerState) api.ExplainedContainer {
		return api.ExplainedContainer{Name: name, State: state, LastExit: &api.ContainerExit{Code: 0}}
	}
	waiting := container("waiting", api.ContainerWaiting)
	waiting.Reason, waiting.WillRestart, waiting.Next = "CrashLoopBackOff", true, time.Now().Add(time.Minute)
	s := New(fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods/{name}/why": sends(api.Explanation{
			Pod: "web", UID: "u", State: api.PodStateNotReady, Cause: &api.Cause{Hint: "a\u202eb\nc"},
			Containers: []api.ExplainedContainer{
				waiting, container("unknown", api.ContainerUnknown),
				container("completed", api.ContainerCompleted), container("restarting", api.ContainerRestarting),
				container("x;y", api.ContainerRunning), container("broken", api.ContainerFailed),
			},
		}),
		"GET /v1/events": sends(),
		"GET /v1/pods/{name}/output": func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("container") == "broken" {
				w.WriteHeader(http.StatusNotFound)
				sends(&api.Error{Status: http.StatusNotFound, Message: "no log"})(w, r)
				return
			}
			l := api.Line{Stream: "stdout", Line: r.FormValue("runs") + "\x1b" + strings.Repeat("é", maxLine)}
			sends(api.OutputRecord{Line: l})(w, r)
		},
	}))
	zone := time.FixedZone("", 765*60)
	d, err := s.Pod(t.Context(), "web", zone)
	if err != nil || len(d.Exits) != 6 {
		t.Fatalf("%v: %+v", err, d)
	}
	if next := waiting.Next.In(zone).Format(time.TimeOnly); !strings.Contains(d.Containers[0].Text, next) {
		t.Errorf("text %q, want the time %s", d.Containers[0].Text, next)
	}
	for i, want := range []struct{ log, command, err string }{
		{log: "previous", command: "podstead logs web -c waiting --previous --tail 20"},
		{log: "previous", command: "podstead logs web -c unknown --previous --tail 20"},
		{log: "newest", command: "podstead logs web -c completed --tail 20"},
		{log: "newest", command: "podstead logs web -c restarting --tail 20"},
		{log: "previous"},
		{err: "no log", command: "podstead logs web -c broken --tail 20"},
	} {
		x := d.Exits[i]
		if x.Command != want.command || x.Error != want.err || (len(x.Evidence.Log) == 1) != (want.log != "") {
			t.Errorf("%+v, want %+v", x, want)
			continue
		}
		if want.log == "" {
			continue
		}
		line := want.log + `\x1b` + strings.Repeat("é", maxLine-len(want.log)-1) + "…"
		if x.Evidence.Log[0] != line {
			t.Errorf("%s: line %.40q", x.Container, x.Evidence.Log[0])
		}
	}
}

// slowDaemon takes a second for each explanation of all pods.
type slowDaemon struct {
	why, stats []time.Duration // the times of requests
	begun      time.Time
}

func (d *slowDaemon) WhyAll(ctx context.Context, _ int) (l api.ExplanationList, err error) {
	d.why = append(d.why, time.Since(d.begun))
	pause(ctx, time.Second)
	return l, ctx.Err()
}

func (d *slowDaemon) Stats(ctx context.Context, _ ...string) (s api.StatsSummary, err error) {
	d.stats = append(d.stats, time.Since(d.begun))
	return s, ctx.Err()
}

// TestMeasurer checks that the daemon has a rest between measurements, that streams share them, and that explanations are requested only
// after changes, or after some time.
func TestMeasurer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &slowDaemon{begun: time.Now()}
		m := measurer{daemon: d, rest: minRest, lock: make(chan struct{}, 1)}
		changed := time.Now()
		measure := func() *measurement {
			got, err := m.measure(t.Context(), changed, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		measure() // at 0s, takes 1s
		changed = time.Now()
		shared := make(chan *measurement, 3)
		for range cap(shared) { // at 5s, takes 1s
			go func() { shared <- measure() }()
		}
		a, b, c := (<-shared).explained, (<-shared).explained, (<-shared).explained
		if a != b || b != c || a.Before(changed) {
			t.Errorf("explained at %v, %v, %v", a, b, c)
		}
		measure() // at 10s, nothing has changed
		time.Sleep(time.Millisecond)
		measure() // at 11s
		time.Sleep(whyInterval)
		measure() // at 26s
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.measure(canceled, time.Now(), time.Now()); err == nil {
			t.Error("no error after the stream")
		}
		const s = time.Second
		if !slices.Equal(d.why, []time.Duration{0, 5 * s, 26 * s}) ||
			!slices.Equal(d.stats, []time.Duration{0, 5 * s, 10 * s, 11 * s, 26 * s}) {
			t.Errorf("explanations at %v, samples at %v", d.why, d.stats)
		}
	})
}

// TestNeed checks how much pods need a person.
func TestNeed(t *testing.T) {
	t.Parallel()
	pending := api.Pod{Metadata: api.Metadata{UID: "u"}, Status: api.PodStatus{Phase: api.PhasePending}}
	scheduled := api.Pod{Status: api.PodStatus{Schedule: &api.ScheduleStatus{}}}
	withFile := func(reason api.Reason) api.Pod {
		p := pending
		p.Status.Conditions = []api.Condition{{Type: api.FileAccepted, Status: "False", Reason: reason}}
		return p
	}
	because := func(state api.PodState, kind api.CauseKind) *api.Explanation {
		return &api.Explanation{State: state, Cause: &api.Cause{Kind: kind}}
	}
	for name, test := range map[string]struct {
		pod  api.Pod
		e    *api.Explanation
		want Need
	}{
		"a file that is refused":   {pod: api.Pod{Status: api.PodStatus{Phase: api.PhaseFailed}}, want: Failing},
		"scheduled":                {pod: scheduled, want: Well},
		"scheduled, not started":   {scheduled, &api.Explanation{State: api.PodStateScheduled}, Failing},
		"scheduled, explained":     {scheduled, &api.Explanation{State: api.PodStateScheduled, Healthy: true}, Well},
		"not explained yet":        {pod: pending, want: Moving},
		"pulling":                  {pending, because(api.PodStateNotReady, api.CauseImagePulling), Moving},
		"pull failed":              {pending, because(api.PodStateNotReady, api.CauseImageFailed), Failing},
		"ready":                    {pending, &api.Explanation{State: api.PodStateReady, Healthy: true}, Well},
		"ready after a restart":    {pending, &api.Explanation{State: api.PodStateReady}, Noticed},
		"ready, volumes are old":   {pending, &api.Explanation{State: api.PodStateReady, NotUpdated: "x"}, Failing},
		"ready, not saved":         {pending, &api.Explanation{State: api.PodStateReady, NotDurable: "x"}, Failing},
		"stopped, not removed":     {pending, &api.Explanation{State: api.PodStateStopped, NotRemoved: "x"}, Failing},
		"ready, the file is not":   {withFile(api.ReasonInvalidFile), &api.Explanation{State: api.PodStateReady}, Failing},
		"ready, an update waits":   {withFile(api.ReasonUpdatePending), &api.Explanation{State: api.PodStateReady}, Noticed},
		"ready, rollout undone":    {withFile(api.ReasonRolloutUndone), &api.Explanation{State: api.PodStateReady, Healthy: true}, Well},
		"stopping":                 {pending, &api.Explanation{State: api.PodStateStopping}, Moving},
		"stopped":                  {pending, &api.Explanation{State: api.PodStateStopped, Healthy: true}, Over},
		"succeeded":                {pending, &api.Explanation{State: api.PodStateSucceeded, Healthy: true}, Over},
		"failed":                   {pending, &api.Explanation{State: api.PodStateFailed}, Failing},
		"the engine is not usable": {pending, because(api.PodStateUnknown, api.CauseEngineUnavailable), Failing},
	} {
		if got := needOf(&test.pod, test.e); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestManyPods checks the size of the list of 200 pods, and that a pod with 100,000 events stays bounded.
func TestManyPods(t *testing.T) {
	t.Parallel()
	pods := map[[2]string]*api.Pod{}
	var why []api.Explanation
	for i := range 200 {
		name, uid := fmt.Sprintf("pod-%03d", i), fmt.Sprint(i)
		pods[[2]string{name, uid}] = &api.Pod{Metadata: api.Metadata{Name: name, UID: uid}}
		why = append(why, api.Explanation{Pod: name, UID: uid, Healthy: i > 0, State: api.PodStateReady})
	}
	got := rows(pods, nil, why, time.Now())
	text, err := json.Marshal(List{got})
	if err != nil || len(got) != 200 || got[0].Name != "pod-000" || got[0].Need != Noticed || len(text) > 100_000 {
		t.Errorf("%v, %d rows in %d bytes, first %+v", err, len(got), len(text), got[0])
	}
	var newest newest
	for i := range uint64(100_000) {
		newest.add(api.Event{Seq: i, Kind: api.EventContainerStarted})
	}
	if n := len(newest.events()); n != maxEvents || newest.events()[n-1].Seq != 99_999 || cap(newest.list) > 4*maxEvents {
		t.Errorf("%d events", n)
	}
}

// brokenDaemon panics when it is measured.
type brokenDaemon struct{}

func (brokenDaemon) WhyAll(context.Context, int) (api.ExplanationList, error)   { panic("broken") }
func (brokenDaemon) Stats(context.Context, ...string) (api.StatsSummary, error) { panic("broken") }

// TestPanics checks that a panic in a goroutine reaches the caller, with its stack.
func TestPanics(t *testing.T) {
	t.Parallel()
	measured := New(fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods": func(w http.ResponseWriter, r *http.Request) {
			sends(api.PodChange{Type: api.Listed})(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	}))
	measured.rounds.daemon = brokenDaemon{}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for name, call := range map[string]func() error{
		"watch":   func() error { return New(nil).Pods(ctx, time.UTC, func(any) error { return nil }) },
		"measure": func() error { return measured.Pods(ctx, time.UTC, func(any) error { return nil }) },
		"logs":    func() error { return New(nil).Logs(ctx, []string{"a", "b"}, 1, func([]Line) error { return nil }) },
	} {
		func() {
			defer func() {
				if p, is := recover().(*Panic); !is || p.Value == nil || !strings.Contains(p.Error(), "internal/live.") {
					t.Errorf("%s: %v", name, p)
				}
			}()
			t.Errorf("%s returns %v", name, call())
		}()
	}
}

// TestRowsWithoutUID checks that a file that was refused and a schedule are not taken for each other.
func TestRowsWithoutUID(t *testing.T) {
	t.Parallel()
	pods := map[[2]string]*api.Pod{
		{"file", ""}:     {Status: api.PodStatus{Phase: api.PhaseFailed}},
		{"schedule", ""}: {Status: api.PodStatus{Schedule: &api.ScheduleStatus{}}},
		{"web", "1"}:     {Metadata: api.Metadata{UID: "1"}},
	}
	failed := []api.Explanation{{Pod: "schedule", State: api.PodStateNotReady}} // its last run
	for _, r := range rows(pods, nil, failed, time.Now()) {
		if r.Refused != (r.Name == "file") || r.Scheduled != (r.Name == "schedule") {
			t.Errorf("%+v", r)
		}
	}
}

// TestContainers checks that a pod's row has its sidecars, which can run a shell, and no other init containers.
func TestContainers(t *testing.T) {
	t.Parallel()
	p := api.Pod{Metadata: api.Metadata{Name: "web", UID: "1"}}
	p.Spec.Containers = []spec.Container{{Name: "app"}}
	p.Spec.InitContainers = []spec.Container{{Name: "setup"}, {Name: "proxy", RestartPolicy: spec.RestartAlways}}
	got := rows(map[[2]string]*api.Pod{{"web", "1"}: &p}, nil, nil, time.Now())
	if want := []string{"app", "proxy"}; !slices.Equal(got[0].Containers, want) {
		t.Errorf("containers %q, want %q", got[0].Containers, want)
	}
}

// TestBatches checks that a container that writes fast waits for the screen: what is collected is bounded, and no line is lost.
func TestBatches(t *testing.T) {
	t.Parallel()
	const lines = 5 * MaxBatch
	records := make([]any, lines)
	for i := range records {
		records[i] = api.OutputRecord{Line: api.Line{Container: "app", Stream: "stdout", Line: fmt.Sprint(i)}}
	}
	s := New(fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods/{name}":        sends(api.Pod{Metadata: api.Metadata{Name: "web", UID: "u"}}),
		"GET /v1/pods/{name}/output": sends(records...),
	}))
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var got []string
	err := s.Logs(ctx, []string{"web"}, 1, func(batch []Line) error {
		if len(batch) > MaxBatch {
			t.Errorf("a batch of %d lines", len(batch))
		}
		for _, l := range batch {
			got = append(got, l.Text)
		}
		return nil
	})
	if err != nil || len(got) != lines+1 { // with the note that the log is complete
		t.Fatalf("%v, %d lines", err, len(got))
	}
	for i, text := range got[:lines] {
		if text != fmt.Sprint(i) {
			t.Fatalf("line %d is %q", i, text)
		}
	}
}
