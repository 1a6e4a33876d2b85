package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// newLogs returns a host with the pods db and web, which run. The container app of each, and proxy of web, have two lines of output.
func newLogs(t *testing.T) *testHost {
	t.Helper()
	h := newTestHost(t, api.Version{})
	h.write(t, "db.toml", script("labels = { app = \"shop\" }", "echo one; echo two; "+runs))
	h.write(t, "web.toml", script("labels = { app = \"shop\", tier = \"front\" }", "echo one; echo two >&2; "+runs)+
		strings.Replace(script("", "echo in; echo out; "+runs), "app", "proxy", 1))
	h.want(t, "apply $DIR/db.toml $DIR/web.toml", "pod/db created\npod/web created\n")
	h.await(t, "logs db", `two`)
	h.await(t, "logs web", `(?s)two.*out`)
	return h
}

func TestLogs(t *testing.T) {
	h := newLogs(t)
	const all = "db/app    | one\ndb/app    | two\nweb/app   | one\nweb/app   | two\nweb/proxy | in\nweb/proxy | out\n"
	for line, want := range map[string]string{
		"logs db":                   "one\ntwo\n",
		"logs pod/db":               "one\ntwo\n",
		"logs db --all-containers":  "one\ntwo\n",
		"logs db --prefix":          "db/app | one\ndb/app | two\n",
		"logs web":                  "app   | one\napp   | two\nproxy | in\nproxy | out\n",
		"logs web --all-containers": "app   | one\napp   | two\nproxy | in\nproxy | out\n",
		"logs web -c proxy":         "in\nout\n",
		"logs web -c proxy --all-containers=false":              "in\nout\n",
		"logs web --prefix":                                     "web/app   | one\nweb/app   | two\nweb/proxy | in\nweb/proxy | out\n",
		"logs web --prefix=false":                               "one\ntwo\nin\nout\n",
		"logs web db":                                           all,
		"logs pods db web":                                      all,
		"logs -l app=shop":                                      all,
		"logs -l tier=front -c app":                             "one\ntwo\n",
		"logs -l app=shop -c app":                               "db/app    | one\ndb/app    | two\nweb/app   | one\nweb/app   | two\n",
		"logs web db --tail 1":                                  "db/app    | two\nweb/app   | two\nweb/proxy | out\n",
		"logs web db --tail 1 --prefix=false":                   "two\ntwo\nout\n",
		"logs db --tail=-1":                                     "one\ntwo\n",
		"logs db --since 1h":                                    "one\ntwo\n",
		"logs db web --grep TW":                                 "db/app    | two\nweb/app   | two\n",
		"logs db --tail 1 --grep one":                           "",
		"logs db --since 1ns":                                   "",
		"logs db --since 0":                                     "one\ntwo\n",
		"logs db --since-time 2026-01-02T15:04:05Z --tail 1":    "two\n",
		"logs db --since-time 2226-01-02T15:04:05.123456+02:00": "",
	} {
		h.want(t, line, want)
	}
	if got := h.want(t, "logs -l app=none", ""); got.stderr != "podstead: no pods\n" {
		t.Errorf("stderr of no pods: %q", got.stderr)
	}
	stamped := regexp.MustCompile(`^(app   \| \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (one|two)\n){2}(proxy \| \d{4}-.*Z (in|out)\n){2}$`)
	if got := h.run(t, "logs web --timestamps"); !stamped.MatchString(got.stdout) {
		t.Errorf("with times:\n%s", got.stdout)
	}
}

// TestLogsSinceTimeOfLine checks that lines since the time that --timestamps shows are shown.
func TestLogsSinceTimeOfLine(t *testing.T) {
	h := newLogs(t)
	all := h.run(t, "logs db --timestamps").stdout
	at, _, _ := strings.Cut(all, " ")
	h.want(t, "logs db --timestamps --since-time "+at, all)
}

// TestLogsExamples runs the examples of the help.
func TestLogsExamples(t *testing.T) {
	h := newTestHost(t, api.Version{})
	for _, name := range []string{"db", "web"} {
		h.write(t, name+".toml",
			script("labels = { app = \"shop\" }\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }",
				"echo "+name+"; sleep 0.1; exit 1"))
	}
	h.want(t, "apply $DIR/db.toml $DIR/web.toml", "pod/db created\npod/web created\n")
	h.await(t, "get web -o jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}", "1")
	h.await(t, "logs db", "db")
	root := (&app{}).root()
	cmd, _, err := root.Find([]string{"logs"})
	if err != nil {
		t.Fatal(err)
	}
	var examples sync.WaitGroup
	for line := range strings.Lines(cmd.Example) {
		args, isCommand := strings.CutPrefix(strings.TrimSpace(line), "podstead ")
		if !isCommand {
			continue
		}
		if !strings.Contains(args, " -f") && !strings.Contains(args, "--follow") {
			h.await(t, args, "web\n")
			continue
		}
		examples.Go(func() { // until the pods are deleted
			if got := h.run(t, args); got.code != 0 || !strings.Contains(got.stdout, "web\n") {
				t.Errorf("podstead %s: exit code %d, stdout:\n%sstderr:\n%s", args, got.code, got.stdout, got.stderr)
			}
		})
	}
	h.await(t, "get web -o jsonpath={.status.containerStatuses[0].restartCount}", `\d\d`)
	if got := h.run(t, "delete --all"); got.code != 0 {
		t.Error(got.stderr)
	}
	examples.Wait()
}

func TestLogsErrors(t *testing.T) {
	h := newLogs(t)
	for line, test := range map[string]struct {
		code int
		want string
	}{
		"logs": {
			statusUsage, "podstead: logs requires a pod, a file, --selector or --follow\nhint: run podstead logs --help for usage\n",
		},
		"logs -l a=b=c":                      {statusUsage, `--selector "a=b=c": `},
		"logs deploy/web":                    {statusUsage, `resource type "deploy" is not supported`},
		"logs web -f --previous":             {statusUsage, "--previous and --follow cannot be combined: the previous run has terminated"},
		"logs web --since 1m --since-time x": {statusUsage, "--since and --since-time cannot be combined"},
		"logs web --grep=":                   {statusUsage, "--grep: must not be empty"},
		"logs web --since=-1m":               {statusUsage, "--since -1m0s: must not be negative"},
		"logs web --since yesterday":         {statusUsage, `--since "yesterday": must be a duration`},
		"logs web --since-time 15:04":        {statusUsage, `--since-time "15:04": must be a time, such as 2026-01-02T15:04:05Z`},
		"logs web --all-containers -c app":   {statusUsage, "--all-containers and --container cannot be combined"},
		"logs web --all-containers=false":    {statusUsage, "--all-containers=false requires --container"},
		"logs web none db":                   {statusNotFound, `podstead: no such pod "none"`},
		"logs -f web none":                   {statusNotFound, `podstead: no such pod "none"`},
		"logs web proxy": {
			statusNotFound, "podstead: no such pod \"proxy\"\nhint: select a container with podstead logs web -c proxy\n",
		},
		"logs web -c none":        {statusNotFound, `pod "web" has no container "none"`},
		"logs -f web db -c proxy": {statusNotFound, `pod "db" has no container "proxy"`},
		"logs db --previous":      {statusNotFound, `container "app" of pod "db" has no previous run`},
	} {
		h.fails(t, line, test.code, test.want)
	}
	if got := h.run(t, "logs db none"); got.stdout != "" {
		t.Errorf("output before the error: %q", got.stdout)
	}
	if got := h.run(t, "logs web db none"); strings.Contains(got.stderr, "hint: ") {
		t.Errorf("hint for a name that is no container: %q", got.stderr)
	}
}

// fullWriter is a file on a full disk.
type fullWriter struct{ written int }

func (w *fullWriter) Write([]byte) (int, error) {
	w.written++
	return 0, errors.New("no space left on device")
}

// TestLogsToFullDisk checks that logs ends with the first line that cannot be written.
func TestLogsToFullDisk(t *testing.T) {
	newLogs(t)
	for _, line := range []string{"logs web db", "logs web -f", "logs db"} {
		var stderr bytes.Buffer
		w := &fullWriter{}
		a := &app{in: strings.NewReader(""), out: w, err: &stderr}
		if code := a.run(t.Context(), strings.Fields(line)); code != statusFailed || w.written != 1 ||
			stderr.String() != "podstead: no space left on device\n" {
			t.Errorf("%s: exit code %d after %d writes, stderr %q", line, code, w.written, stderr.String())
		}
	}
}

// searchable is a daemon with the pod web. The search for a text that begins with "it's" reaches a bound in both of its containers.
type searchable struct {
	*http.Server

	query  atomic.Pointer[url.Values] // of the last search
	served chan error
}

// serveSearches returns a daemon that listens on a socket.
func serveSearches(socket string) (*searchable, error) {
	s := &searchable{served: make(chan error, 1)}
	s.Server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := json.NewEncoder(w)
		pod := api.Pod{Metadata: api.Metadata{Name: "web", UID: "u", Labels: map[string]string{"a": "b"}}}
		switch r.URL.Path {
		case "/v1/version":
			_ = answer.Encode(api.Version{}) // the client is gone if that fails
		case "/v1/pods":
			_ = answer.Encode(api.PodList{Items: []api.Pod{pod}})
		case "/v1/pods/web":
			_ = answer.Encode(pod)
		default:
			s.query.Store(new(r.URL.Query()))
			_ = answer.Encode(api.OutputRecord{Line: api.Line{Container: "app", Stream: "stdout", Line: "found"}})
			for _, name := range []string{"app", "proxy"} {
				stopped := api.SearchStopped{Container: name, Bytes: 256 << 20, Seconds: 3, From: time.Unix(1e9, 5).UTC()}
				if strings.HasSuffix(r.FormValue("grep"), "back") {
					stopped.From = time.Time{}
				}
				if strings.HasPrefix(r.FormValue("grep"), "it's") {
					_ = answer.Encode(api.OutputRecord{SearchStopped: &stopped})
				}
			}
		}
	})}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	go func() { s.served <- s.Serve(l) }()
	return s, nil
}

// close stops the daemon.
func (s *searchable) close() error {
	if err := errors.Join(s.Close(), <-s.served); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// answerSearches is a command of scripts: the daemon of the script is [searchable].
func answerSearches(ts *testscript.TestScript, _ bool, _ []string) {
	socket := filepath.Join(ts.Getenv("TESTDIR"), "s")
	s, err := serveSearches(socket)
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.close()) })
	ts.Setenv("PODSTEAD_SOCKET", socket)
}

// TestLogsSearch checks that a search has no default of --tail, that one that reaches a bound in containers fails with hints that continue
// it, and that another one succeeds.
func TestLogsSearch(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := serveSearches(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("PODSTEAD_SOCKET", filepath.Join(dir, "s"))
	const notices = "podstead: web/app: the search stopped after 256Mi (3s), lines from 2001-09-09T01:46:40Z on are not searched\n" +
		"podstead: web/proxy: the search stopped after 256Mi (3s), lines from 2001-09-09T01:46:40Z on are not searched\n" +
		"podstead: search logs: not all lines were searched\n"
	hints := func(flags string) string {
		const hint = "hint: continue with podstead logs web -c "
		return notices + hint + "app " + flags + "\n" + hint + "proxy " + flags + "\n"
	}
	for name, test := range map[string]struct {
		args   []string
		tail   string
		code   int
		stderr string
	}{
		"all lines":        {args: []string{"web", "--grep", "x"}},
		"selector":         {args: []string{"-l", "a=b", "--grep", "x"}},
		"tail of selector": {args: []string{"-l", "a=b", "--grep", "x", "--tail", "3"}, tail: "3"},
		"no search":        {args: []string{"-l", "a=b"}, tail: "10"},
		"a bound": {
			args: []string{"web", "--grep", "it's"}, code: statusFailed,
			stderr: hints("--since-time 2001-09-09T01:46:40.000000005Z --grep 'it'\\''s'"),
		},
		"a bound after the clock was set back": {
			args: []string{"web", "--previous", "--grep", "it's back"}, code: statusFailed,
			stderr: strings.ReplaceAll(notices, "lines from 2001-09-09T01:46:40Z on are not searched",
				"the lines after it are not searched, their times are not later than that of the first line") +
				"hint: search the output of podstead logs web -c app --previous with grep -i\n" +
				"hint: search the output of podstead logs web -c proxy --previous with grep -i\n",
		},
		"a bound in the previous run": {
			args: []string{"web", "--previous", "--grep", "it's\n"}, code: statusFailed,
			stderr: strings.NewReplacer("-c app", "-c app --previous", "-c proxy", "-c proxy --previous").Replace(
				hints("--since-time 2001-09-09T01:46:40.000000005Z --grep TEXT")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			a := &app{in: strings.NewReader(""), out: &stdout, err: &stderr}
			code := a.run(t.Context(), append([]string{"logs", "--prefix=false"}, test.args...))
			if code != test.code || stdout.String() != "found\n" || stderr.String() != test.stderr {
				t.Errorf("exit code %d, stdout %q, stderr:\n%swant:\n%s", code, stdout.String(), stderr.String(), test.stderr)
			}
			if got := s.query.Load().Get("tail"); got != test.tail {
				t.Errorf("tail %q, want %q", got, test.tail)
			}
		})
	}
}

// podWriter is a buffer of lines.
type podWriter struct {
	mu     sync.Mutex
	buffer []string
}

func (w *podWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buffer = append(w.buffer, string(p))
	return len(p), nil
}

// of returns the lines with a prefix.
func (w *podWriter) of(prefix string) (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.buffer {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, line)
		}
	}
	return lines
}

// await waits until each pod has a number of lines.
func (w *podWriter) await(t *testing.T, lines int, pods ...string) {
	t.Helper()
	tick, timeout := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for _, pod := range pods {
		for len(w.of(pod+"/")) < lines {
			select {
			case <-tick.C:
			case <-timeout:
				t.Fatalf("pod %s has less than %d lines: %q", pod, lines, w.of(""))
			}
		}
	}
}

// restart ends the run of the container app of each pod, and waits until the next one, with a restart count, runs.
func (h *testHost) restart(t *testing.T, restarts int, pods ...string) {
	t.Helper()
	for _, pod := range pods {
		s, _ := h.pods.Pod(pod)
		if !h.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Code: 1}) {
			t.Fatalf("the container of pod %s does not run", pod)
		}
		for timeout := time.After(time.Minute); ; {
			changed := h.pods.Changed()
			s, _ = h.pods.Pod(pod)
			if run := s.Facts.Container("app").Newest; run.Restarts == restarts && !run.Started.IsZero() {
				break
			}
			select {
			case <-changed:
			case <-timeout:
				t.Fatalf("pod %s is not restarted %d times: %+v", pod, restarts, s.Status)
			}
		}
	}
}

// TestLogsFollow restarts the daemon while logs follows two pods, whose containers restart, also while there is no daemon, and then deletes
// the pods. Lines are numbered over the runs. Each run lasts until its lines are shown, because only the logs of two runs are kept.
func TestLogsFollow(t *testing.T) {
	h := newParallelHost(t, api.Version{},
		fakeruntime.Options{Program: func(_ *spec.Pod, a lifecycle.StartContainer) (fakeruntime.Program, bool) {
			n := 2 * a.Restarts
			return fakeruntime.Program{Runs: fakeruntime.Forever, Output: []fakeruntime.Line{
				{Text: fmt.Sprint("line ", n+1)}, {Text: fmt.Sprint("line ", n+2)},
			}}, true
		}})
	pods := []string{"a", "b"}
	for _, pod := range pods {
		h.write(t, pod+".toml", script("restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }", "true"))
	}
	h.want(t, "apply $DIR/a.toml $DIR/b.toml", "pod/a created\npod/b created\n")
	h.await(t, "logs a", "line 1")
	stdout := &podWriter{}
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		a := &app{in: strings.NewReader(""), out: stdout, err: &stderr}
		code <- a.run(t.Context(), h.argumentsOf("logs a b --follow --tail 10 --timestamps"))
	}()
	for restarts := 1; restarts <= 2; restarts++ {
		stdout.await(t, 2*restarts, pods...)
		h.restart(t, restarts, pods...)
	}
	stdout.await(t, 6, pods...)
	if err := api.RecordStop(h.socket, 2); err != nil {
		t.Fatal(err)
	}
	h.closeServer()
	h.restart(t, 3, pods...)
	h.restart(t, 4, pods...)
	h.options.Version.Instance = "two"
	h.serve(t)
	stdout.await(t, 10, pods...)
	h.restart(t, 5, pods...)
	stdout.await(t, 12, pods...)
	for _, pod := range pods {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.pods.Stop(ctx, pod, supervisor.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-code; got != 0 {
		t.Errorf("exit code %d, stderr:\n%s", got, stderr.String())
	}
	if !strings.Contains(stderr.String(), "podstead: connection to the daemon lost, reconnected\n") {
		t.Errorf("stderr:\n%s", stderr.String())
	}
	for _, pod := range pods {
		last, lines := "", stdout.of(pod+"/")
		for i, line := range lines {
			stamp, text, _ := strings.Cut(strings.TrimPrefix(line, pod+"/app | "), " ")
			if stamp < last || text != fmt.Sprintf("line %d\n", i+1) {
				t.Errorf("line %d of %s: %q after %s", i+1, pod, line, last)
			}
			last = stamp
		}
		if len(lines) != 12 {
			t.Errorf("lines of %s: %q", pod, lines)
		}
	}
}
