package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// host is a host whose daemon runs in this process, with an engine in memory.
type host struct {
	t           *testing.T
	dir, socket string
	engine      *fakeruntime.Runtime
	client      *client.Client
	pods        *supervisor.Supervisor
	stop        func()
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "ui") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &host{t: t, dir: dir, socket: filepath.Join(dir, "s")}
	h.engine = fakeruntime.New(fakeruntime.Options{LogDir: filepath.Join(dir, "logs")})
	h.client = client.New(h.socket, "podstead ui")
	t.Cleanup(h.client.Close)
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

// start starts the daemon.
func (h *host) start() {
	h.t.Helper()
	ctx := context.WithoutCancel(h.t.Context())
	store, err := state.NewDir(filepath.Join(h.dir, "pods"))
	if err != nil {
		h.t.Fatal(err)
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		h.t.Fatal(err)
	}
	h.pods = supervisor.New(ctx, supervisor.Options{Runtime: h.engine, Store: store, Clock: clock})
	if err := h.pods.Recover(ctx); err != nil {
		h.t.Fatal(err)
	}
	srv := server.New(ctx, server.Options{
		Supervisor: h.pods, LogDir: filepath.Join(h.dir, "logs"),
		Version: api.Version{Version: "1", Instance: fmt.Sprint(time.Now().UnixNano())},
	})
	l, err := server.Listen(ctx, h.socket)
	if err != nil {
		h.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	h.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(ctx, testTimeout)
		defer cancel()
		if err := errors.Join(srv.Close(ctx), <-served, h.pods.Leave(ctx)); err != nil {
			h.t.Errorf("stop the daemon: %v", err)
		}
	})
}

// create creates a pod with a container that runs a script.
func (h *host) create(name, more, script string) {
	h.t.Helper()
	text := fmt.Sprintf("name = %q\nterminationGracePeriodSeconds = 0\n%s\n"+
		"[[containers]]\nname = \"app\"\nimage = \"busybox\"\ncommand = [\"sh\", \"-c\", %q]\n",
		name, more, script)
	if _, err := h.client.Create(h.t.Context(), api.CreateRequest{File: filepath.Join(h.dir, name+".toml"), Text: text}); err != nil {
		h.t.Fatal(err)
	}
}

const runs = "sleep 1000"

// values reads the values of a stream until one holds.
func values[T any](s *site, path string, holds func(T) bool) T {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	answer, err := http.DefaultClient.Do(s.request(http.MethodGet, path, "").WithContext(ctx))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var v T
	for in := bufio.NewReader(answer.Body); ; {
		text, err := in.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%v; the last value: %+v", err, v)
		}
		v = *new(T)
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			s.t.Fatalf("%v: %s", err, text)
		}
		if holds(v) {
			return v
		}
	}
}

// TestPods checks that the list is live, and that pods which need a person come first, also after a restart of the daemon.
func TestPods(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := newSite(t, h.client)
	h.create("web", "", runs)
	h.create("crash", "", "exit 3")
	h.create("job", "restartPolicy = \"Never\"", "exit 0")
	names := func(l live.List) (out []string) {
		for _, p := range l.Pods {
			out = append(out, p.Name+" "+p.Ready+" "+fmt.Sprint(p.Need))
		}
		return out
	}
	want := []string{"crash 0/1 0", "web 1/1 3", "job 0/1 4"}
	got := values(s, "/api/pods", func(l live.List) bool {
		return slices.Equal(names(l), want) && l.Pods[0].Restarts > 0 && l.Pods[0].Status == "CrashLoopBackOff"
	})
	if p := got.Pods[0]; !strings.Contains(p.Text, "exited with code 3") || p.LastRestart.IsZero() || p.UID == "" || p.Created.IsZero() {
		t.Errorf("%+v", p)
	}
	type either struct {
		live.List
		live.Lost
	}
	stage := 0
	values(s, "/api/pods", func(e either) bool {
		switch {
		case stage == 0 && len(e.Pods) == 3:
			stage = 1
			if err := h.client.Stop(t.Context(), "web", client.StopOptions{Delete: true}); err != nil {
				t.Fatal(err)
			}
		case stage == 1 && len(e.Pods) == 2:
			stage = 2
			h.stop()
		case stage == 2 && e.Error != "":
			stage = 3
			h.start()
		}
		return stage == 3 && len(e.Pods) == 2
	})
}

// TestPod checks the explanation, the last exit and the timeline of a pod whose texts have markup.
func TestPod(t *testing.T) {
	t.Parallel()
	const markup = `</title><b>x</b>`
	h := newHost(t)
	s := newSite(t, h.client)
	h.create("crash", "", strings.Repeat("echo line; ", 30)+"echo "+markup+"; exit 3")
	h.create("job", "restartPolicy = \"Never\"", "echo done; exit 0")
	var d live.Detail
	await(t, func() bool {
		_, _, body := s.do(s.request(http.MethodGet, "/api/pod?name=crash", ""))
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return len(d.Exits) == 1 && d.Restarts > 0
	})
	x := d.Exits[0]
	if x.Exit.Code != 3 || len(x.Evidence.Log) != 20 || x.Evidence.Log[19] != markup ||
		!strings.HasPrefix(x.Command, "podstead logs crash -c app") {
		t.Errorf("exit %+v", x)
	}
	caused := slices.IndexFunc(d.Events, func(e api.Event) bool { return e.Cause != 0 })
	if caused < 0 || !strings.Contains(d.Text, "exited with code 3") {
		t.Errorf("text %q, events %+v", d.Text, d.Events)
	}
	await(t, func() bool {
		_, _, body := s.do(s.request(http.MethodGet, "/api/pod?name=job", ""))
		return strings.Contains(body, `"log":["done"]`) // an explanation has no log of a run that succeeded
	})
	code, header, body := s.do(s.request(http.MethodGet, "/api/timeline?name=crash&last=1h", ""))
	if code != http.StatusOK || header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(body, `data-lane="app"`) ||
		!strings.Contains(body, "exited with code 3") {
		t.Errorf("status %d, %s", code, body)
	}
	at := d.Exits[0].Exit.FinishedAt.UnixMilli()
	_, _, part := s.do(s.request(http.MethodGet, fmt.Sprintf("/api/timeline?name=crash&from=%d&to=%d", at-100, at+100), ""))
	if !strings.Contains(part, fmt.Sprintf(`data-begin="%d" data-end="%d"`, at-100, at+100)) ||
		!strings.Contains(part, "exited with code 3") {
		t.Errorf("the part around an exit: %s", part)
	}
	for _, forbidden := range []string{"<style", "<script", "style="} { // the policy forbids them
		if strings.Contains(body, forbidden) {
			t.Errorf("the timeline has %s", forbidden)
		}
	}
	for doc := xml.NewDecoder(strings.NewReader(body)); ; {
		if _, err := doc.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{
		"/api/pod?name=..": http.StatusNotFound, "/api/pod": http.StatusNotFound, "/api/timeline?name=.": http.StatusNotFound,
		"/api/pod?name=none": http.StatusNotFound, "/api/timeline?name=none": http.StatusNotFound,
		"/api/timeline?name=crash&from=1&to=x": http.StatusBadRequest, "/api/timeline?name=crash&from=2&to=1": http.StatusBadRequest,
		"/api/timeline?name=crash&to=1": http.StatusBadRequest, "/api/timeline?name=crash&from=1&to=9e15": http.StatusBadRequest,
		"/api/around?name=crash&at=x": http.StatusBadRequest, "/api/around?name=.&at=1": http.StatusNotFound,
		"/api/around?name=none&at=1": http.StatusNotFound, "/api/around?name=crash&container=none&at=1": http.StatusNotFound,
		"/api/timeline?name=crash&last=x": http.StatusBadRequest, "/api/timeline?name=crash&last=-1h": http.StatusBadRequest,
		"/timeline.css": http.StatusOK,
	} {
		if got, _, body := s.do(s.request(http.MethodGet, path, "")); got != want {
			t.Errorf("%s: status %d, want %d: %s", path, got, want, body)
		}
	}
	h.stop()
	if got, _, body := s.do(s.request(http.MethodGet, "/api/pod?name=crash", "")); got != http.StatusBadGateway {
		t.Errorf("without a daemon: status %d: %s", got, body)
	}
}

// TestAround checks the log lines around a time: of one container or of all, not too many of them, and how much is read.
func TestAround(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	second := func(container string, n int) api.OutputRecord {
		l := api.Line{Container: container, Stream: "stdout", Time: at.Add(time.Duration(n) * time.Second), Line: fmt.Sprint(n)}
		return api.OutputRecord{Line: l}
	}
	s := newSite(t, fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods/{name}/output": func(w http.ResponseWriter, r *http.Request) {
			query := strings.Join([]string{r.FormValue("sinceTime"), r.FormValue("untilTime"), r.FormValue("uid")}, " ")
			if want := "2026-01-01T11:59:00Z 2026-01-01T12:01:00Z u"; query != want {
				t.Errorf("%s, want %s", query, want)
			}
			var records []any
			for i := -20; i <= 20; i++ {
				records = append(records, second("a", i))
			}
			if r.FormValue("container") == "" {
				records = append(records, second("b", -1), second("b", 1))
			}
			if r.FormValue("container") == "fast" {
				records = slices.Repeat([]any{second("fast", -1)}, maxAround+10)
			}
			sends(records...)(w, r)
		},
	}))
	lines := func(container string) (texts []string, partial bool) {
		path := fmt.Sprintf("/api/around?name=p&uid=u&at=%d&container=%s", at.UnixMilli(), container)
		_, _, body := s.do(s.request(http.MethodGet, path, ""))
		var got around
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for _, l := range got.Lines {
			texts = append(texts, l.Container+l.Text)
		}
		return texts, got.Partial
	}
	for container, want := range map[string]string{
		"a": "a-9 a-8 a-7 a-6 a-5 a-4 a-3 a-2 a-1 a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10",
		"":  "a-8 a-7 a-6 a-5 a-4 a-3 a-2 a-1 b-1 a0 a1 b1 a2 a3 a4 a5 a6 a7 a8 a9",
	} {
		if got, partial := lines(container); strings.Join(got, " ") != want || partial {
			t.Errorf("container %q: %q, partial %v", container, got, partial)
		}
	}
	if got, partial := lines("fast"); len(got) != aroundLines || !partial {
		t.Errorf("%d lines, partial %v", len(got), partial)
	}
}

// TestSearch checks the search in the logs of pods: all runs, sorted by time, the newest lines, and why lines are not searched.
func TestSearch(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := newSite(t, fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods/{name}/output": func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("grep") != "x y" || r.FormValue("runs") != "" || r.FormValue("follow") != "" {
				t.Error(r.URL)
			}
			record := func(seconds, n int) api.OutputRecord {
				time := at.Add(time.Duration(seconds) * time.Second)
				return api.OutputRecord{Line: api.Line{Container: "app", Stream: "stdout", Time: time, Line: fmt.Sprint("x y ", n)}}
			}
			var records []any
			switch r.PathValue("name") {
			case "a":
				for i := range 3 * maxFound {
					records = append(records, record(2*i, i))
				}
				stopped := api.SearchStopped{Container: "app", From: at, Bytes: 1 << 20, Seconds: 20}
				records = append(records, api.OutputRecord{SearchStopped: &stopped})
			case "b":
				records = []any{record(1, 0), record(6*maxFound-3, 1)}
			default:
				w.WriteHeader(http.StatusNotFound)
				records = []any{&api.Error{Status: http.StatusNotFound, Message: "no pod\u202e"}}
			}
			sends(records...)(w, r)
		},
	}))
	_, _, body := s.do(s.request(http.MethodGet, "/api/search?pod=b&pod=none&pod=a&pod=a&pod=..&text=x+y", ""))
	var got found
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	last := got.Lines[len(got.Lines)-2:]
	if len(got.Lines) != maxFound || got.Count != 3*maxFound+2 || last[0].Pod != "b" || last[1].Pod != "a" || last[1].Text != "x y 2999" {
		t.Errorf("%d of %d lines, the last %+v", len(got.Lines), got.Count, last)
	}
	want := []string{
		`..: no such pod ".."`,
		"a/app: the search stopped after 1Mi (20s), lines from 2026-01-01T12:00:00Z on are not searched",
		`none: no pod\u202e`,
	}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestOneSearch checks that searches do not run at the same time, and that one that waits ends with its request.
func TestOneSearch(t *testing.T) {
	t.Parallel()
	var active atomic.Int32
	s := newSite(t, fakeDaemon(t, map[string]http.HandlerFunc{
		"GET /v1/pods/{name}/output": func(_ http.ResponseWriter, r *http.Request) {
			if active.Add(1) > 1 {
				t.Error("two searches at the same time")
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-r.Context().Done():
			}
			active.Add(-1)
		},
	}))
	var searches sync.WaitGroup
	for range 3 {
		searches.Go(func() { s.do(s.request(http.MethodGet, "/api/search?pod=a&text=x", "")) })
	}
	searches.Wait()
	s.searching <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	searches.Go(func() {
		r := s.request(http.MethodGet, "/api/search?pod=a&text=x", "") //nolint:contextcheck // the next line sets it
		answer, err := http.DefaultClient.Do(r.WithContext(ctx))
		if err == nil {
			err = answer.Body.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	await(t, func() bool { return s.requests() == 1 })
	cancel()
	searches.Wait()
	await(t, func() bool { return s.requests() == 0 })
}

// await waits until a condition holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	timeout := time.After(testTimeout)
	for tick := time.Tick(20 * time.Millisecond); !holds(); {
		select {
		case <-tick:
		case <-timeout:
			t.Fatal("the condition does not hold")
		}
	}
}

// TestLogs checks that logs of pods are merged by time, followed over a restart of the daemon, and bounded.
func TestLogs(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := newSite(t, h.client)
	h.create("a", "", "echo a1; sleep 0.2; echo a2; sleep 0.2; echo a3; "+runs)
	h.create("b", "", "sleep 0.1; echo b1; sleep 0.2; echo b2; sleep 0.2; echo b3; "+runs)
	var texts []string
	add := func(b batch) {
		if !slices.IsSortedFunc(b.Lines, func(a, b live.Line) int { return a.Time.Compare(b.Time) }) {
			t.Errorf("not sorted: %+v", b.Lines)
		}
		for _, l := range b.Lines {
			texts = append(texts, l.Text)
		}
	}
	values(s, "/api/logs?pod=a&pod=b&pod=none&tail=100", func(b batch) bool {
		add(b)
		return len(texts) >= 7
	})
	for _, want := range []string{"a1", "a3", "b1", "b3", `no such pod "none"`} {
		if !slices.Contains(texts, want) {
			t.Errorf("no line %q: %q", want, texts)
		}
	}
	texts = nil
	restarted := false
	h.create("c", "", "echo c1; sleep 1; echo later; "+runs)
	values(s, "/api/logs?pod=c&tail=100", func(b batch) bool {
		add(b)
		if len(texts) > 0 && !restarted {
			restarted = true
			h.stop()
			h.start()
		}
		return len(texts) >= 3
	})
	slices.Sort(texts)
	if diff := cmp.Diff([]string{"c1", "connection to the daemon lost, reconnected", "later"}, texts); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	for _, path := range []string{
		"/api/search?text=x", "/api/search?pod=a&text=", "/api/search?text=x&" + strings.Repeat("pod=a&", live.MaxLogPods+1),
		"/api/logs?tail=1", "/api/logs?pod=a", "/api/logs?pod=a&tail=-1", "/api/logs?pod=a&tail=1000000",
		"/api/logs?tail=1&" + strings.Repeat("pod=a&", live.MaxLogPods+1),
	} {
		if got, _, body := s.do(s.request(http.MethodGet, path, "")); got != http.StatusBadRequest {
			t.Errorf("%s: status %d: %s", path, got, body)
		}
	}
}

// TestHost checks the state of the host. This daemon has no disk usage, as over the read-only socket.
func TestHost(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := newSite(t, h.client)
	code, _, body := s.do(s.request(http.MethodGet, "/api/host", ""))
	var got hostState
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", code, err, body)
	}
	if got.CPUs < 1 || got.Memory.Total < got.Memory.Available || got.Memory.Available == 0 || got.Load == "" ||
		got.Version.Version != "1" || got.Disk != nil || got.DiskError == "" {
		t.Errorf("%s", body)
	}
	pulls, updates := inProgress([]api.Pod{{
		Metadata: api.Metadata{Name: "web"},
		Status: api.PodStatus{
			Pulling:    map[string]api.Progress{"b": {Done: 1, Total: 2, Unpacking: true, Image: "b:2"}, "a": {}},
			Conditions: []api.Condition{{Type: api.FileAccepted, Status: "False", Reason: api.ReasonUpdatePending, Message: "image"}},
		},
	}})
	if len(pulls) != 2 || pulls[0].Container != "a" || pulls[1].What != `Unpacking image "b:2"` ||
		len(updates) != 1 || updates[0].Reason != api.ReasonUpdatePending {
		t.Errorf("%+v %+v", pulls, updates)
	}
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
