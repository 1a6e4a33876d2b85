package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// newAttachServer returns a server of attach clients and its directory.
func newAttachServer(t *testing.T) (dir string, server *attach.Server) {
	t.Helper()
	dir, server = t.TempDir(), attach.NewServer()
	l, err := attach.Listen(filepath.Join(dir, attach.Socket))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return dir, server
}

// newAttachHost returns a host with the pod web, whose container app runs. A client that attaches to a container reads "output" and its
// name, and then that it has exited with code 3.
func newAttachHost(t *testing.T) *testHost {
	t.Helper()
	dir, server := newAttachServer(t)
	open := func(ctx context.Context, _ string, ref lifecycle.Ref, r attach.Request) (*attach.Session, error) {
		c := attach.NewContainer(attach.Options{})
		out := c.Output(attach.Stdout)
		r.Container, r.Stdin = ref.Container, false
		server.Add(r.Container, c)
		s, err := attach.Open(ctx, dir, r)
		_, _ = io.WriteString(out, "output of "+ref.Container+"\n")
		_ = out.Close()
		c.Exited(3)
		return s, err
	}
	exits := func(_ *spec.Pod, a lifecycle.StartContainer) (fakeruntime.Program, bool) {
		return fakeruntime.Program{Exit: lifecycle.Exit{Code: 4}}, a.Container == "short"
	}
	h := newHostOf(t, api.Version{}, fakeruntime.Options{Attach: open, Program: exits})
	h.want(t, "apply --wait "+h.write(t, "web.toml", script("", runs)), "pod/web created\n")
	return h
}

func TestAttach(t *testing.T) {
	h := newAttachHost(t)
	const exited = `podstead: container "app" of pod "web" exited with code 3` + "\n"
	for _, tt := range []struct {
		line string
		want output
	}{
		{"attach web", output{3, "output of app\n", exited}},
		{"attach -q pod/web -c app", output{3, "output of app\n", ""}},
		{"attach -it web", output{
			3, "output of app\n",
			"podstead: unable to use stdin: container \"app\" did not allocate it (stdin = true in the pod file)\n" +
				"podstead: unable to use a TTY: container \"app\" did not allocate one (tty = true in the pod file)\n" + exited,
		}},
	} {
		if got := h.run(t, tt.line); got != tt.want {
			t.Errorf("podstead %s:\n%+v\nwant\n%+v", tt.line, got, tt.want)
		}
	}
	for line, want := range map[string]struct {
		code    int
		message string
	}{
		"attach":                      {2, "attach requires a pod"},
		"attach none":                 {3, `no such pod "none"`},
		"attach web -c x":             {3, "hint: use one of app"},
		"attach web --detach-keys=ab": {2, `--detach-keys: detach key "ab"`},
	} {
		h.fails(t, line, want.code, want.message)
	}
}

func TestDebug(t *testing.T) {
	h := newAttachHost(t)
	for _, tt := range []struct {
		line string
		want output
	}{
		{
			"debug -i web --image i --name look",
			output{
				3, "output of look\n",
				"podstead: added container \"look\" to pod \"web\"\npodstead: container \"look\" of pod \"web\" exited with code 3\n",
			},
		},
		{"debug -q web --image i --name short -- sh -c ls", output{4, "", ""}},
		{"debug -q web --image i --name later --attach=false", output{}},
	} {
		if got := h.run(t, tt.line); got != tt.want {
			t.Errorf("podstead %s:\n%+v\nwant\n%+v", tt.line, got, tt.want)
		}
	}
	for line, want := range map[string]struct {
		code    int
		message string
	}{
		"debug":                              {2, "debug requires a pod"},
		"debug -t web":                       {2, "--tty requires --stdin"},
		"debug web --copy-to x":              {2, "--copy-to is not supported"},
		"debug web --image-archive x.tar":    {2, "--image-archive requires --image"},
		"debug web --env A":                  {2, `--env "A": must be NAME=VALUE`},
		"debug none --image i":               {3, `no such pod "none"`},
		"debug web --image i --name app":     {1, "app"},
		"debug web --image i --target other": {2, "targetContainerName"},
	} {
		h.fails(t, line, want.code, want.message)
	}
}
