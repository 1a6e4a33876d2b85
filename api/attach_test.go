package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// streams are the standard streams of containers, which a test reads and writes in their stead. A container is named by its run.
type streams struct {
	dir    string
	server *attach.Server
	err    error // of the next calls, if not nil
}

func newStreams(t *testing.T) *streams {
	t.Helper()
	s := &streams{dir: t.TempDir(), server: attach.NewServer()}
	l, err := attach.Listen(filepath.Join(s.dir, attach.Socket))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// Attach implements [api.Attacher].
func (s *streams) Attach(ctx context.Context, _ string, ref lifecycle.Ref, r attach.Request) (*attach.Session, error) {
	if s.err != nil {
		return nil, s.err
	}
	r.Container = ref.Container
	return attach.Open(ctx, s.dir, r)
}

// process is a container with standard streams.
type process struct {
	*attach.Container
	stdin          *os.File
	stdout, stderr io.WriteCloser
}

func (s *streams) start(t *testing.T, container string) *process {
	t.Helper()
	path := filepath.Join(s.dir, container)
	in, err := attach.NewStdin(path, true, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Container: attach.NewContainer(attach.Options{Stdin: in})}
	if p.stdin, err = os.OpenFile(path, os.O_RDONLY, 0); err != nil {
		t.Fatal(err)
	}
	in.Created()
	var out, errs io.Reader
	out, p.stdout = io.Pipe()
	errs, p.stderr = io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{p.Copy(out, attach.Stdout)}) }()
	go func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{p.Copy(errs, attach.Stderr)}) }()
	s.server.Add(container, p.Container)
	t.Cleanup(func() {
		p.exit(0)
		s.server.Remove(container)
		_ = p.stdin.Close()
	})
	return p
}

func (p *process) exit(code uint32) {
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	p.Exited(code)
}

func (d *testDaemon) attach(t *testing.T, pod string, q api.AttachQuery) *channel.Conn {
	t.Helper()
	conn, err := d.client.Attach(t.Context(), pod, q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// interactive starts a pod with an interactive container.
func (d *testDaemon) interactive(t *testing.T) *process {
	t.Helper()
	p := d.streams.start(t, "main")
	uid := d.create(t, file("web", app("main", "sleep 3600")+"stdin = true\n"+app("other", "sleep 3600"))).Metadata.UID
	d.await(t, uid, "ready pod", ready)
	return p
}

func TestAttach(t *testing.T) {
	d := newTestDaemon(t, fakeruntime.Options{})
	p := d.interactive(t)
	conn := d.attach(t, "web", api.AttachQuery{Stdin: true, Stdout: true, Stderr: true})
	data := bytes.Repeat([]byte("a\x00\xff\n"), 1<<18)
	go func() {
		_, _ = conn.Writer(channel.Stdin).Write(data)
		_ = conn.Writer(channel.Stdin).Close()
	}()
	if got, err := io.ReadAll(p.stdin); !bytes.Equal(got, data) || err != nil {
		t.Errorf("the container read %d bytes, %v; want %d", len(got), err, len(data))
	}
	go func() {
		_, _ = p.stdout.Write(data)
		_, _ = p.stderr.Write([]byte("warning"))
		p.exit(5)
	}()
	if got, err := io.ReadAll(conn.Reader(channel.Stdout)); !bytes.Equal(got, data) || err != nil {
		t.Errorf("stdout: %d bytes, %v; want %d", len(got), err, len(data))
	}
	if got, err := io.ReadAll(conn.Reader(channel.Stderr)); string(got) != "warning" || err != nil {
		t.Errorf("stderr: %q, %v", got, err)
	}
	status, err := conn.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if code, ok := api.ExitCode(status); !ok || code != 5 {
		t.Errorf("exit code %d in %v", code, status)
	}
}

// A client that disconnects does not end the container. The daemon notices.
func TestAttachedClientIsLost(t *testing.T) {
	d := newTestDaemon(t, fakeruntime.Options{})
	p := d.interactive(t)
	conn := d.attach(t, "web", api.AttachQuery{Stdin: true, Stdout: true})
	conn.Close()
	if _, err := io.ReadAll(p.stdin); err != nil { // EOF because of stdinOnce
		t.Error(err)
	}
	other := d.attach(t, "web", api.AttachQuery{Stdout: true})
	p.exit(0)
	status, err := other.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if code, ok := api.ExitCode(status); !ok || code != 0 {
		t.Errorf("exit code %d in %v", code, status)
	}
}

// The end of the server disconnects clients.
func TestAttachEndsWithServer(t *testing.T) {
	d := newTestDaemon(t, fakeruntime.Options{})
	d.interactive(t)
	conn := d.attach(t, "web", api.AttachQuery{Stdout: true})
	d.closeServer()
	select {
	case <-conn.Done():
	case <-time.After(testTimeout):
		t.Fatal("the client is still connected")
	}
	if !errors.Is(conn.Err(), channel.ErrLost) {
		t.Errorf("the session ended with %v", conn.Err())
	}
}

func TestAttachIsRejected(t *testing.T) {
	d := newTestDaemon(t, fakeruntime.Options{})
	d.interactive(t)
	uid := d.create(t, file("job", "restartPolicy = \"Never\"\n"+app("main", "exit 3"))).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	all := api.AttachQuery{Stdout: true, Stderr: true}
	for _, tt := range []struct {
		name, pod string
		query     api.AttachQuery
		shim      error
		status    int
		reason    string
		want      string
	}{
		{name: "no stream", pod: "web", status: http.StatusBadRequest, want: "at least one of"},
		{name: "no pod", pod: "none", query: all, status: http.StatusNotFound, want: `no such pod "none"`},
		{name: "no container", pod: "web", query: api.AttachQuery{Stdout: true, Container: "x"}, status: http.StatusNotFound, want: `has no container "x"`},
		{name: "other pod", pod: "web", query: api.AttachQuery{Stdout: true, UID: "x"}, status: http.StatusNotFound, want: "no such pod"},
		{name: "no stdin", pod: "web", query: api.AttachQuery{Stdin: true, Container: "other"}, status: http.StatusConflict, want: "does not have stdin"},
		{name: "no TTY", pod: "web", query: api.AttachQuery{Stdout: true, TTY: true}, status: http.StatusConflict, want: "does not have a TTY"},
		{
			name: "terminated", pod: "job", query: all, status: http.StatusConflict, reason: api.ReasonNotRunning,
			want: `container "main" of pod "job" is not running: terminated with exit code 3 (Error)`,
		},
		{name: "just exited", pod: "web", query: all, shim: &attach.Error{Reason: attach.NotFound}, status: http.StatusConflict, reason: api.ReasonNotRunning, want: "is not running"},
		{name: "used", pod: "web", query: all, shim: &attach.Error{Reason: attach.NoStdin, Message: "used"}, status: http.StatusConflict, want: `"main" of pod "web": used`},
		{name: "old shim", pod: "web", query: all, shim: attach.ErrNoServer, status: http.StatusConflict, want: "serves no attach clients"},
		{name: "other error", pod: "web", query: all, shim: errors.New("oops"), status: http.StatusInternalServerError, want: "oops"},
	} {
		d.streams.err = tt.shim
		conn, err := d.client.Attach(t.Context(), tt.pod, tt.query)
		e, ok := errors.AsType[*api.Error](err)
		if !ok || e.Status != tt.status || e.Reason != tt.reason || !strings.Contains(e.Message, tt.want) {
			t.Errorf("%s: %v (%+v); want %d and %q", tt.name, err, e, tt.status, tt.want)
		}
		if err == nil {
			conn.Close()
		}
	}
	d.client.Close()
	d.closeServer()
	if _, err := d.client.Attach(t.Context(), "web", all); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("attach without a daemon: %v", err)
	}
}
