package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// newListed returns a host with the pods db and web, which run, and job, which has succeeded.
func newListed(t *testing.T) *testHost {
	t.Helper()
	return newTestHost(t, api.Version{}).list(t)
}

// list creates the pods of newListed.
func (h *testHost) list(t *testing.T) *testHost {
	t.Helper()
	h.write(t, "web.toml", script("labels = { app = \"shop\", tier = \"front\" }", runs))
	h.write(t, "db.toml", script("labels = { app = \"shop\" }\nannotations.note = \"a\\u001b[2Jb\\tc\"", runs))
	h.write(t, "job.toml", script("restartPolicy = \"Never\"", "exit 0"))
	h.want(t, "apply $DIR/web.toml $DIR/db.toml $DIR/job.toml", "pod/web created\npod/db created\npod/job created\n")
	h.await(t, "get", `(?s)db +1/1 +Running.*job +0/1 +Completed.*web +1/1 +Running`)
	return h
}

// arguments executes a command line whose arguments contain spaces.
func (h *testHost) arguments(t *testing.T, args ...string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &stdout, err: &stderr}
	code := a.run(t.Context(), args)
	return output{code, stdout.String(), stderr.String()}
}

// TestGetFormats checks the formats of get that have expressions, its order, labels and headers.
func TestGetFormats(t *testing.T) {
	h := newListed(t)
	path, template, columns := h.write(t, "path",
		"{.items[*].metadata.name}"), h.write(t, "template",
		"{{len .items}}"), h.write(t, "columns", "NAME  PHASE\nmetadata.name  status.phase\n")
	for _, c := range []struct {
		args string // separated by |
		want string
	}{
		{`get|-o|jsonpath={.items[*].metadata.name}`, "db job web"},
		{`get|web|-o=jsonpath={.status.phase}{"\n"}`, "Running\n"},
		{`get|web|db|-o|jsonpath={range .items[*]}{.metadata.name}={.spec.containers[0].image}{"\n"}{end}`, "db=busybox\nweb=busybox\n"},
		{`get|-l|app=shop|-o|jsonpath={.items[*].metadata.labels.tier}`, "front"},
		{`get|-o|jsonpath={.items[?(@.status.phase=="Succeeded")].metadata.name}`, "job"},
		{`get|job|-o|jsonpath={.status.containerStatuses[0].state.terminated.exitCode}`, "0"},
		{`get|web|-o|jsonpath={.status.conditions[?(@.type=="Ready")].status}`, "True"},
		{`get|db|-o|jsonpath={.metadata.annotations.note}`, `a\x1b[2Jb` + "\tc"},
		{
			`get|-o|custom-columns=NAME:.metadata.name,PHASE:.status.phase`,
			"NAME   PHASE\ndb     Running\njob    Succeeded\nweb    Running\n",
		},
		{`get|-o|custom-columns=NAME:metadata.name,TIER:metadata.labels.tier|--no-headers`, "db    <none>\njob   <none>\nweb   front\n"},
		{`get|db|-o|custom-columns=NOTE:.metadata.annotations.note`, "NOTE\n" + `a\x1b[2Jb c` + "\n"},
		{`get|-l|app=none|-o|custom-columns=NAME:.metadata.name`, "NAME\n"},
		{`get|-o|jsonpath-as-json={.items[*].metadata.name}`, "[\n    \"db\",\n    \"job\",\n    \"web\"\n]\n"},
		{`get|web|-o|jsonpath-as-json={.metadata.labels}`, "[\n    {\n        \"app\": \"shop\",\n        \"tier\": \"front\"\n    }\n]\n"},
		{`get|-o|jsonpath-file=` + path, "db job web"},
		{`get|-o|go-template-file=` + template, "3"},
		{`get|-o|custom-columns-file=` + columns, "NAME   PHASE\ndb     Running\njob    Succeeded\nweb    Running\n"},
		{`get|-o|go-template={{range .items}}{{.metadata.name}} {{end}}`, "db job web "},
		{`get|db|-o|go-template={{.metadata.annotations.note}}`, `a\x1b[2Jb` + "\tc"},
		{`get|-o|name|--sort-by|.status.phase`, "pod/db\npod/web\npod/job\n"},
		{`get|-o|name|--sort-by={.metadata.labels.tier}`, "pod/db\npod/job\npod/web\n"},
	} {
		if got := h.arguments(t, strings.Split(c.args, "|")...); got.code != 0 || got.stdout != c.want {
			t.Errorf("%s: exit code %d, stdout:\n%s\nwant:\n%s\nstderr:\n%s", c.args, got.code, got.stdout, c.want, got.stderr)
		}
	}
	h.await(t, "get --show-labels", `^NAME .* IP +LABELS\ndb .* app=shop\njob .* <none>\nweb .* app=shop,tier=front\n$`)
	h.await(t, "get web db --no-headers", `^db +1/1 .*\nweb +1/1 .*\n$`)
	h.await(t, "get -o wide --show-labels web", ` OWNER +LABELS\nweb .* app=shop,tier=front\n$`)
}

func TestGetErrors(t *testing.T) {
	h := newListed(t)
	for line, want := range map[string]string{
		"get -o jsonpath=.metadata.name": `--output jsonpath: expression ".metadata.name": must have braces, such as ` +
			`{.metadata.name}`,
		"get -o jsonpath-as-json={.metadata": `--output jsonpath-as-json: expression "{.metadata": unclosed action`,
		"get -o jsonpath-as-json=.metadata":  `--output jsonpath-as-json: expression ".metadata": must have braces`,
		"get -o jsonpath={.metadata":         `--output jsonpath: expression "{.metadata": unclosed action`,
		"get -o jsonpath": `output format "jsonpath" is not supported: must be one of wide, json, yaml, ` +
			`name, jsonpath=, jsonpath-as-json=, jsonpath-file=, go-template=, go-template-file=, custom-columns=`,
		"get -o go-template={{.a":   `--output go-template: template "{{.a": `,
		"get -o jsonpath-file=none": `--output jsonpath-file: open none: no such file`,
		"get -o custom-columns=NAME": `--output custom-columns: column "NAME": must have the form NAME:PATH, such as ` +
			`NAME:.metadata.name`,
		"get --sort-by {.a}{.b}": `--sort-by: expression "{.a}{.b}": must be a path such as .metadata.name`,
		"get --sort-by .none":    `--sort-by: no pod has the field {.none}`,
		"get --sort-by " +
			".status.conditions[0] -o name": `--sort-by: sort by {.status.conditions[0]}: values must be either strings or numbers`,
	} {
		h.fails(t, line, statusUsage, want)
	}
	got := h.fails(t, "get none -o jsonpath={.metadata.name}", statusNotFound, `no such pod "none"`)
	if got.stdout != "" {
		t.Errorf("stdout %q, want none", got.stdout)
	}
}

// lines is a writer that reports what was written.
type lines struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newLines() *lines { return &lines{changed: make(chan struct{}, 1)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until the text contains a text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(time.Minute)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.changed:
		case <-limit:
			t.Fatalf("output:\n%s\nwant %q", l, text)
		}
	}
}

// background starts a command that runs until the function that it returns is called. That function returns the exit code.
func (h *testHost) background(t *testing.T, line string) (stdout, stderr *lines, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, stderr, exit := h.start(ctx, line)
	stop = sync.OnceValue(func() int {
		cancel()
		return <-exit
	})
	t.Cleanup(func() { stop() })
	return stdout, stderr, stop
}

// start starts a command, whose exit code it sends.
func (h *testHost) start(ctx context.Context, line string) (stdout, stderr *lines, exit <-chan int) {
	stdout, stderr = newLines(), newLines()
	code := make(chan int, 1)
	go func() {
		a := &app{in: strings.NewReader(""), out: stdout, err: stderr}
		code <- a.run(ctx, h.argumentsOf(line))
	}()
	return stdout, stderr, code
}

// TestGetWatch checks that a watch prints changes in each format with expressions.
func TestGetWatch(t *testing.T) {
	h := newListed(t)
	columns, _, _ := h.background(t, "get -w -l app=shop -o custom-columns=NAME:.metadata.name,PHASE:.status.phase")
	columns.await(t, "NAME   PHASE\ndb     Running\nweb    Running\n")
	template, _, _ := h.background(t, `get web -w -o jsonpath={.metadata.name}:{.status.phase}{"\n"}`)
	template.await(t, "web:Running\n")
	table, notes, _ := h.background(t, "get web --watch --show-labels --no-headers --sort-by .metadata.name")
	table.await(t, " app=shop,tier=front\n")
	notes.await(t, "podstead: --sort-by is ignored with --watch\n")
	if text := table.String(); !strings.HasPrefix(text, "web  ") {
		t.Errorf("table without header:\n%s", text)
	}
	h.want(t, "stop web --grace-period 1", "pod/web stopped\n")
	columns.await(t, "web    Succeeded\n")
	template.await(t, "web:Succeeded\n")
	table.await(t, " Stopped ")
}
