package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// newExecHost returns a host with the pod web, whose containers app and side run. A command writes its arguments and its container to
// stdout and its input to stderr, and exits with the code in its last argument, if that is a number.
func newExecHost(t *testing.T) *testHost {
	t.Helper()
	run := func(_ context.Context, ref lifecycle.Ref, c session.Command) (code int, err error) {
		if c.Args[0] == "none" {
			return 0, &session.StartError{Code: 127, Message: "exec: none: not found"}
		}
		fmt.Fprintf(c.Stdout, "%q in %s\n", c.Args, ref.Container)
		if c.Stdin != nil {
			_, err = io.Copy(c.Stderr, c.Stdin)
		}
		_, _ = fmt.Sscan(c.Args[len(c.Args)-1], &code) // other arguments are no code
		return code, err
	}
	h := newHostOf(t, api.Version{}, fakeruntime.Options{Session: run})
	side := strings.ReplaceAll(script("", runs), `"app"`, `"side"`)
	h.want(t, "apply --wait "+h.write(t, "web.toml", script("", runs)+side), "pod/web created\n")
	return h
}

func TestExec(t *testing.T) {
	h := newExecHost(t)
	h.stdin = "input"
	for _, tt := range []struct {
		line string
		want output
	}{
		{"exec web -- ls -l /tmp", output{stdout: `["ls" "-l" "/tmp"] in app` + "\n"}},
		{"exec web ls -l -- x", output{stdout: `["ls" "-l" "--" "x"] in app` + "\n"}},
		{"exec pod/web -c side -- ls", output{stdout: `["ls"] in side` + "\n"}},
		{"exec -c side web ls -c", output{stdout: `["ls" "-c"] in side` + "\n"}},
		{"exec -i web -- cat", output{stdout: `["cat"] in app` + "\n", stderr: "input"}},
		{
			"exec web -it -- cat",
			output{stdout: `["cat"] in app` + "\n", stderr: "podstead: cannot use a terminal: stdin is not a terminal\ninput"},
		},
		{"exec -itq web -- cat", output{stdout: `["cat"] in app` + "\n", stderr: "input"}},
		{"exec web -- exit 7", output{7, `["exit" "7"] in app` + "\n", "podstead: command terminated with exit code 7\n"}},
		{"exec -q web -- exit 7", output{7, `["exit" "7"] in app` + "\n", ""}},
		{"exec web -- none", output{127, "", "podstead: exec: none: not found\n"}},
	} {
		if got := h.run(t, tt.line); got != tt.want {
			t.Errorf("podstead %s:\n%+v\nwant\n%+v", tt.line, got, tt.want)
		}
	}
	for line, want := range map[string]struct {
		code    int
		message string
	}{
		"exec":                         {2, "exec requires a pod and a command"},
		"exec web":                     {2, "exec requires a command"},
		"exec web --":                  {2, "exec requires a command"},
		"exec node/web ls":             {2, `resource type "node" is not supported`},
		"exec web --unknown ls":        {2, "unknown flag: --unknown"},
		"exec -t web ls":               {2, "--tty requires --stdin"},
		"exec web --detach-keys=ab ls": {2, `--detach-keys: detach key "ab"`},
		"exec none ls":                 {3, `no such pod "none"`},
		"exec web --container=x -- ls": {3, "hint: use one of app, side"},
	} {
		h.fails(t, line, want.code, want.message)
	}
	if got := h.run(t, "exec web --help"); got.code != 0 || !strings.Contains(got.stdout, "Run a command in a running container") {
		t.Errorf("help after the pod: %+v", got)
	}
}
