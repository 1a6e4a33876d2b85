package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// newInteractiveHost returns a host where a client that attaches to a container reads what the container wrote before, then what it passes
// as input, and then that the container has exited with code 3. The container runs as long as the pod.
func newInteractiveHost(t *testing.T, before string) *testHost {
	t.Helper()
	dir, server := newAttachServer(t)
	var h *testHost
	open := func(ctx context.Context, uid string, ref lifecycle.Ref, r attach.Request) (*attach.Session, error) {
		r.Container = ref.Container
		path := filepath.Join(dir, "in")
		in, err := attach.NewStdin(path, true, func() error { return nil })
		if err != nil {
			return nil, err
		}
		c := attach.NewContainer(attach.Options{Stdin: in})
		stdin, err := os.OpenFile(path, os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		in.Created()
		out := c.Output(attach.Stdout)
		server.Add(r.Container, c)
		if _, err := io.WriteString(out, before); err != nil {
			return nil, err
		}
		s, err := attach.Open(ctx, dir, r)
		go func() {
			_, _ = io.Copy(out, struct{ io.Reader }{stdin})
			_ = errors.Join(out.Close(), stdin.Close())
			c.Exited(3)
			h.engine.Crash(uid, ref.Container, lifecycle.Exit{Code: 3})
		}()
		return s, err
	}
	h = newHostOf(t, api.Version{}, fakeruntime.Options{Attach: open, Program: interactiveProgram})
	return h
}

func interactiveProgram(_ *spec.Pod, a lifecycle.StartContainer) (fakeruntime.Program, bool) {
	return fakeruntime.Program{Runs: fakeruntime.Forever}, a.Container == "app" // it exits with its session
}

func TestRunInteractive(t *testing.T) {
	h := newInteractiveHost(t, "in: ")
	h.stdin = "some input\n"
	file := h.write(t, "web.toml", script("terminationGracePeriodSeconds = 1", "true")+
		"[[containers]]\nname = \"other\"\nimage = \"busybox\"\ncommand = [\"sh\", \"-c\", \"echo aside; sleep 1000\"]\n")
	got := h.run(t, "run -i -c app "+file)
	if got.code != 3 || got.stdout != "in: some input\n" {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{
		"other | aside\n", "web/app Container started\n", `podstead: container "app" of pod "web" exited with code 3` + "\n",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr has no %q:\n%s", want, got.stderr)
		}
	}
	h.want(t, "get", "")
}

// One line reports that the output before the session is not complete, and how to see it.
func TestIncompleteOutput(t *testing.T) {
	h := newInteractiveHost(t, strings.Repeat("0123456789abcde\n", 8<<10))
	h.stdin = "some input\n"
	const notice = `podstead: container "app" wrote more than 64 KiB before this command attached, the first part is not shown: ` +
		"see all output with podstead logs web -c app\n"
	got := h.run(t, "run -i "+h.write(t, "web.toml", script("", "true")))
	if got.code != 3 || !strings.HasSuffix(got.stdout, "\nsome input\n") || len(got.stdout) > 64<<10 ||
		strings.Count(got.stderr, notice) != 1 {
		t.Errorf("exit code %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
	h.want(t, "apply --wait "+h.write(t, "web.toml", script("", runs)), "pod/web created\n")
	for line, want := range map[string]int{"debug -i web --image i --name a": 1, "debug -qi web --image i --name b": 0} {
		got := h.run(t, line)
		if n := strings.Count(got.stderr, strings.ReplaceAll(notice, "app", line[len(line)-1:])); n != want || got.code != 3 {
			t.Errorf("podstead %s: exit code %d, %s", line, got.code, got.stderr)
		}
	}
}

// The output of a container that exits at once is that of its log.
func TestRunInteractiveShort(t *testing.T) {
	h := newHostOf(t, api.Version{}, fakeruntime.Options{})
	for _, tt := range []struct {
		more, script string
		want         output
	}{
		{"", "echo done", output{0, "done\n", ""}},
		{
			"restartPolicy = \"Always\"", "echo done; exit 4",
			output{4, "done\n", `podstead: container "app" of pod "web" exited with code 4` + "\n"},
		},
	} {
		got := h.run(t, "run -it "+h.write(t, "web.toml", script(tt.more, tt.script)))
		lines := strings.SplitAfter(got.stderr, "\n")
		if got.code != tt.want.code || got.stdout != tt.want.stdout || !strings.HasSuffix(got.stderr, tt.want.stderr) ||
			lines[0] != "podstead: cannot use a terminal: stdin is not a terminal\n" {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}

// A container that cannot start has no exit code.
func TestRunInteractiveNotStarted(t *testing.T) {
	h := newParallelHost(t, api.Version{}, fakeruntime.Options{})
	text := fmt.Sprintf("%s[[initContainers]]\nname = \"init\"\nimage = \"busybox\"\ncommand = [\"false\"]\n",
		script("restartPolicy = \"Never\"", "true"))
	h.fails(t, "run -i "+h.write(t, "web.toml", text), 1, `container "app" did not run: pod "web" failed`)
	got := h.run(t,
		"run -i --timeout 100ms --grace-period 1 "+h.write(t, "slow.toml", strings.Replace(text, "false", "sleep\", \"1000", 1)))
	if got.code != statusTimeout || !strings.Contains(got.stderr, "timed out after 100ms") {
		t.Errorf("%+v", got)
	}
}

func TestRunInteractiveFlags(t *testing.T) {
	h := newHostOf(t, api.Version{}, fakeruntime.Options{})
	web := h.write(t, "web.toml", script("", "true"))
	two := h.write(t, "two.toml", script("", "true")+"[[containers]]\nname = \"other\"\nimage = \"i\"\n")
	invalid := h.write(t, "invalid.toml", script("color = 1", "true"))
	for line, message := range map[string]string{
		"run -t " + web:                       "--tty requires --stdin",
		"run -c app " + web:                   "--container requires --stdin",
		"run --detach-keys a " + web:          "--detach-keys requires --stdin",
		"run -i -q " + web:                    "--quiet cannot be combined with --stdin",
		"run -i -o json " + web:               "--output cannot be combined with --stdin",
		"run -i -d " + web:                    "--stdin cannot be combined with --detach",
		"run -i -":                            "--stdin cannot be combined with a pod file from standard input",
		"run -i " + web + " " + two:           "--stdin requires exactly one pod file",
		"run -i --detach-keys=ab " + web:      `--detach-keys: detach key "ab"`,
		"run -i " + two:                       `pod "two" has several containers: name one of app, other with --container`,
		"run -i -c x " + two:                  `--container "x": must be one of the containers of pod "two": app, other`,
		"run -i " + invalid:                   "color: unknown field",
		"run -i " + h.dir + "/not-there.toml": "no such file",
	} {
		h.fails(t, line, 2, message)
	}
}

// TestRunOnce runs commands with the definition of a pod that exists: in a pod of its own, whose exit code is that of the command. It is
// deleted.
func TestRunOnce(t *testing.T) {
	h := newInteractiveHost(t, "out\n")
	h.write(t, "web.toml", script("terminationGracePeriodSeconds = 1", runs)+"[[containers]]\nname = \"other\"\nimage = \"busybox\"\n")
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	got := h.run(t, "run web -- migrate -v")
	if got.code != 3 || got.stdout != "out\n" ||
		!strings.Contains(got.stderr, "/app Container started\n") || strings.Contains(got.stderr, "/other ") ||
		!regexp.MustCompile(`podstead: container "app" of pod "web-run-[a-z0-9]{5}" exited with code 3\n$`).MatchString(got.stderr) {
		t.Errorf("%+v", got)
	}
	h.want(t, "get -o name", "pod/web\n")
	h.write(t, "web/other.toml", script("", "true"))
	t.Chdir(h.dir) // has a directory with the name of the pod
	if got := h.run(t, "run web -- migrate"); got.code != 3 || got.stdout != "out\n" {
		t.Errorf("beside a directory with the name of the pod: %+v", got)
	}
	h.fails(t, "run web migrate", statusUsage, "migrate: no such file")
	h.fails(t, "run none.toml -- ls", statusNotFound, `no such pod "none.toml"`)
	if err := os.RemoveAll(filepath.Join(h.dir, "web")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"run web --detach -- ls":     "--detach cannot be combined with a pod and a command",
		"run web --wait -- ls":       "--wait cannot be combined with a pod and a command",
		"run web -t -- ls":           "--tty and --detach-keys require --stdin",
		"run web -c none -- ls":      `--container "none": must be one of the containers of pod "web": app, other`,
		"run web -o json -- migrate": "--output cannot be combined with a pod and a command",
	} {
		h.fails(t, line, statusUsage, want)
	}
	h.fails(t, "run none ls", statusNotFound, "hint: apply its file first, or run a pod file with podstead run FILE")
	h.fails(t, "run none.toml ls.toml", statusUsage, "none.toml: no such file")
	h.fails(t, "run web", statusUsage, imageHint)
	name := oneOffName(strings.Repeat("a", 42)+"."+strings.Repeat("b", 200), "12345")
	if len(name) > 63 || !strings.HasSuffix(name, "-run-12345") {
		t.Errorf("name %q", name)
	}
}
