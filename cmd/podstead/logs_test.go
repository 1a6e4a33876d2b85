package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
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
		h.write(t, name+".toml", script("labels = { app = \"shop\" }\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }", "echo "+name+"; sleep 0.1; exit 1"))
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
		"logs":                               {statusUsage, "podstead: logs requires a pod or --selector\nhint: run podstead logs --help for usage\n"},
		"logs -l a=b=c":                      {statusUsage, `--selector "a=b=c": `},
		"logs deploy/web":                    {statusUsage, `resource type "deploy" is not supported`},
		"logs web -f --previous":             {statusUsage, "--previous and --follow cannot be combined: the previous run has terminated"},
		"logs web --since 1m --since-time x": {statusUsage, "--since and --since-time cannot be combined"},
		"logs web --since=-1m":               {statusUsage, "--since -1m0s: must not be negative"},
		"logs web --since yesterday":         {statusUsage, `invalid argument "yesterday" for "--since" flag`},
		"logs web --since-time 15:04":        {statusUsage, `--since-time "15:04": must be a time, such as 2026-01-02T15:04:05Z`},
		"logs web --all-containers -c app":   {statusUsage, "--all-containers and --container cannot be combined"},
		"logs web --all-containers=false":    {statusUsage, "--all-containers=false requires --container"},
		"logs web none db":                   {statusNotFound, `podstead: no such pod "none"`},
		"logs -f web none":                   {statusNotFound, `podstead: no such pod "none"`},
		"logs web proxy":                     {statusNotFound, "podstead: no such pod \"proxy\"\nhint: select a container with podstead logs web -c proxy\n"},
		"logs web -c none":                   {statusNotFound, `pod "web" has no container "none"`},
		"logs -f web db -c proxy":            {statusNotFound, `pod "db" has no container "proxy"`},
		"logs db --previous":                 {statusNotFound, `container "app" of pod "db" has no previous run`},
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
		if code := a.run(t.Context(), strings.Fields(line)); code != statusFailed || w.written != 1 || stderr.String() != "podstead: no space left on device\n" {
			t.Errorf("%s: exit code %d after %d writes, stderr %q", line, code, w.written, stderr.String())
		}
	}
}

// podWriter is a buffer that closes a channel when it has a number of lines with a prefix.
type podWriter struct {
	prefix  string
	lines   int
	written chan struct{}

	mu     sync.Mutex
	buffer []string
}

func (w *podWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buffer = append(w.buffer, string(p))
	if strings.HasPrefix(string(p), w.prefix) {
		if w.lines--; w.lines == 0 {
			close(w.written)
		}
	}
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

// await waits until the lines are written.
func (w *podWriter) await(t *testing.T) {
	t.Helper()
	select {
	case <-w.written:
	case <-time.After(time.Minute):
		t.Fatalf("not enough lines: %q", w.of(""))
	}
}

// TestLogsFollow restarts the daemon while logs follows two pods, whose containers restart, and then deletes the pods.
func TestLogsFollow(t *testing.T) {
	h := newTestHost(t, api.Version{})
	for _, name := range []string{"a", "b"} {
		h.write(t, name+".toml", script("restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }", "echo one; sleep 0.1; echo two; sleep 0.1; exit 1"))
	}
	h.want(t, "apply $DIR/a.toml $DIR/b.toml", "pod/a created\npod/b created\n")
	h.await(t, "logs a", "one")
	stdout := &podWriter{prefix: "a/", lines: 6, written: make(chan struct{})}
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		a := &app{in: strings.NewReader(""), out: stdout, err: &stderr}
		code <- a.run(t.Context(), strings.Fields("logs a b --follow --tail 10 --timestamps"))
	}()
	stdout.await(t)
	if err := api.RecordStop(h.socket, h.options.Version.Instance, 2); err != nil {
		t.Fatal(err)
	}
	h.closeServer()
	h.options.Version.Instance = "two"
	h.serve(t)
	for _, pod := range []string{"a", "b"} {
		h.await(t, "get "+pod+" -o jsonpath={.status.containerStatuses[0].restartCount}", `^([6-9]|\d\d+)$`)
	}
	for _, pod := range []string{"a", "b"} {
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
	for _, pod := range []string{"a", "b"} {
		last, lines := "", stdout.of(pod+"/")
		for i, line := range lines {
			stamp, text, _ := strings.Cut(strings.TrimPrefix(line, pod+"/app | "), " ")
			if stamp <= last || text != []string{"one\n", "two\n"}[i%2] {
				t.Errorf("line %d of %s: %q after %s", i+1, pod, line, last)
			}
			last = stamp
		}
		if len(lines) < 10 {
			t.Errorf("lines of %s: %q", pod, lines)
		}
	}
}
