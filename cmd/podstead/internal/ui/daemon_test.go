package ui

import (
	"context"
	"encoding/json"
	"errors"
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
)

// fakeDaemon serves a daemon's responses, and returns a client of it.
func fakeDaemon(t *testing.T, routes map[string]http.HandlerFunc) *client.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "ui") // the path of a socket in it must be short
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
	c := client.New(socket, "podstead ui")
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

// TestFirstList checks that the first list has all pods, and that errors of the daemon are sent, after which the list is requested again.
func TestFirstList(t *testing.T) {
	t.Parallel()
	var watches atomic.Int32
	s := newSite(t, fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods": func(w http.ResponseWriter, r *http.Request) {
			if watches.Add(1) == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				sends(&api.Error{Status: http.StatusInternalServerError, Message: "broken"})(w, r)
				return
			}
			sends(added("a"))(w, r)
			_ = http.NewResponseController(w).Flush()
			if !pause(r.Context(), 4*settle) { // the list of one pod would be sent
				return
			}
			sends(added("b"), api.PodChange{Type: api.Listed})(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"GET /v1/why":   sends(api.ExplanationList{}),
		"GET /v1/stats": sends(api.StatsSummary{}),
	}), hurry)
	type either struct {
		list
		failed
	}
	var got []string
	values(s, "/api/pods", func(v either) bool {
		if v.Failed != "" {
			got = append(got, v.Failed)
		}
		for _, p := range v.Pods {
			got = append(got, p.Name)
		}
		return v.Pods != nil
	})
	if !slices.Equal(got, []string{"broken", "a", "b"}) {
		t.Errorf("%q", got)
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
	s := newSite(t, fakeDaemon(t, map[string]http.HandlerFunc{
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
	code, _, body := s.do(s.request(http.MethodGet, "/api/pod?name=web", "", with(zoneHeader, "765")))
	var d detail
	if err := json.Unmarshal([]byte(body), &d); err != nil || code != http.StatusOK || len(d.Exits) != 6 {
		t.Fatalf("%v, status %d: %s", err, code, body)
	}
	if want := `a\u202eb` + "\nc"; d.Cause.Hint != want {
		t.Errorf("hint %q, want %q", d.Cause.Hint, want)
	}
	if next := waiting.Next.In(time.FixedZone("", 765*60)).Format(time.TimeOnly); !strings.Contains(d.Containers[0].Text, next) {
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

// TestLogsWithoutDaemon checks that logs wait for a daemon which is unavailable at the first request.
func TestLogsWithoutDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := newSite(t, h.client)
	h.create("a", "", "echo a1; "+runs)
	h.stop()
	var texts []string
	values(s, "/api/logs?pod=a&tail=10", func(b batch) bool {
		for _, l := range b.Lines {
			if texts = append(texts, l.Text); len(texts) == 1 {
				h.start()
			}
		}
		return len(texts) > 1
	})
	if !slices.Equal(texts, []string{"the daemon is unavailable, retrying", "a1"}) {
		t.Errorf("%q", texts)
	}
}
