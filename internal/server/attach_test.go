package server_test

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
	"github.com/podstead/podstead/api/client"
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

// Attach implements [server.Attacher].
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
	sizes          chan attach.Size
}

func (s *streams) start(t *testing.T, container string) *process {
	t.Helper()
	path := filepath.Join(s.dir, container)
	in, err := attach.NewStdin(path, true, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	p := &process{sizes: make(chan attach.Size, 8)}
	p.Container = attach.NewContainer(attach.Options{
		Stdin: in, Terminal: true, Resize: func(s attach.Size) error { p.sizes <- s; return nil },
	})
	if p.stdin, err = os.OpenFile(path, os.O_RDONLY, 0); err != nil {
		t.Fatal(err)
	}
	in.Created()
	p.stdout, p.stderr = p.Output(attach.Stdout), p.Output(attach.Stderr)
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

// attached is a client of a container.
type attached struct {
	stdin          *io.PipeWriter
	stdout, stderr bytes.Buffer
	code           int
	err            error
	ended          chan struct{}
	cancel         context.CancelFunc
}

// attach attaches a client, and waits until the container has it.
func (d *testDaemon) attach(t *testing.T, p *process, o client.AttachOptions) *attached {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attached{ended: make(chan struct{}), cancel: cancel}
	o.Stdout, o.Stderr = &a.stdout, &a.stderr
	if o.Stdin != nil {
		o.Stdin, a.stdin = io.Pipe()
	}
	before := p.Clients()
	go func() {
		defer close(a.ended)
		a.code, a.err = d.client.Attach(ctx, "web", o)
	}()
	t.Cleanup(func() {
		cancel()
		<-a.ended
	})
	for end := time.Now().Add(testTimeout); p.Clients() <= before; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the client is not attached")
		}
	}
	return a
}

func (a *attached) wait(t *testing.T) {
	t.Helper()
	select {
	case <-a.ended:
	case <-time.After(testTimeout):
		t.Fatal("the session did not end")
	}
}

// interactive starts a pod with an interactive container.
func (d *testDaemon) interactive(t *testing.T) *process {
	t.Helper()
	p := d.streams.start(t, "main")
	uid := d.create(t, file("web", app("main", "sleep 3600")+"stdin = true\ntty = true\n"+app("other", "sleep 3600"))).Metadata.UID
	d.await(t, uid, "ready pod", ready)
	return p
}

func TestAttach(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	p := d.interactive(t)
	a := d.attach(t, p, client.AttachOptions{Streams: client.Streams{Stdin: strings.NewReader("")}})
	data := bytes.Repeat([]byte("a\x00\xff\n"), 1<<18)
	go func() {
		_, _ = a.stdin.Write(data)
		_ = a.stdin.Close()
	}()
	if got, err := io.ReadAll(p.stdin); !bytes.Equal(got, data) || err != nil {
		t.Errorf("the container read %d bytes, %v; want %d", len(got), err, len(data))
	}
	_, _ = p.stdout.Write(data)
	_, _ = p.stderr.Write([]byte("warning"))
	p.exit(5)
	a.wait(t)
	if a.code != 5 || a.err != nil {
		t.Errorf("exit code %d, %v", a.code, a.err)
	}
	if got := a.stdout.Bytes(); !bytes.Equal(got, data) {
		t.Errorf("stdout: %d bytes, want %d", len(got), len(data))
	}
	if got := a.stderr.String(); got != "warning" {
		t.Errorf("stderr: %q", got)
	}
}

// A client that requests the output from the start gets a report if it does not get all.
func TestAttachFromStart(t *testing.T) {
	t.Parallel()
	for written, incomplete := range map[int]bool{32 << 10: false, 512 << 10: true} {
		d := newTestDaemon(t, fakeruntime.Options{})
		p := d.interactive(t)
		data := bytes.Repeat([]byte("0123456789abcde\n"), written/16)
		_, _ = p.stdout.Write(data)
		told := false
		a := d.attach(t, p, client.AttachOptions{FromStart: true, Incomplete: func() { told = true }})
		p.exit(0)
		a.wait(t)
		got := a.stdout.Bytes()
		if told != incomplete || len(got) == 0 || !bytes.HasSuffix(data, got) || (len(got) < len(data)) != incomplete {
			t.Errorf("%d bytes: got %d, told %v, %v", len(data), len(got), told, a.err)
		}
	}
}

// A client that disconnects does not end the container. The daemon notices.
func TestAttachedClientIsLost(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	p := d.interactive(t)
	lost := d.attach(t, p, client.AttachOptions{Streams: client.Streams{Stdin: strings.NewReader("")}})
	lost.cancel()
	if _, err := io.ReadAll(p.stdin); err != nil { // EOF because of stdinOnce
		t.Error(err)
	}
	if lost.wait(t); !errors.Is(lost.err, context.Canceled) {
		t.Errorf("the session ended with %v", lost.err)
	}
	for end := time.Now().Add(testTimeout); p.Clients() > 0; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the client remains attached")
		}
	}
	other := d.attach(t, p, client.AttachOptions{})
	p.exit(0)
	if other.wait(t); other.code != 0 || other.err != nil {
		t.Errorf("exit code %d, %v", other.code, other.err)
	}
}

// The end of the server ends the session.
func TestAttachEndsWithServer(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	a := d.attach(t, d.interactive(t), client.AttachOptions{})
	d.closeServer()
	if a.wait(t); !errors.Is(a.err, api.ErrUnavailable) {
		t.Errorf("the session ended with %v", a.err)
	}
}

// A container that is deleted without having exited has no exit code.
func TestAttachedContainerIsDeleted(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	p := d.interactive(t)
	a := d.attach(t, p, client.AttachOptions{})
	p.Close()
	a.wait(t)
	if e, ok := errors.AsType[*api.Error](a.err); !ok || e.Reason != api.ReasonDisconnected {
		t.Errorf("the session ended with %v", a.err)
	}
}

func TestAttachSize(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	p := d.interactive(t)
	resize := make(chan channel.Size)
	d.attach(t, p, client.AttachOptions{Streams: client.Streams{TTY: true, Size: channel.Size{Width: 80, Height: 25}, Resize: resize}})
	p.awaitSize(t, attach.Size{Width: 80, Height: 25})
	resize <- channel.Size{Width: 132, Height: 43}
	p.awaitSize(t, attach.Size{Width: 132, Height: 43})
}

// A container gets input only after its terminal has the size of the client.
func TestAttachSizeBeforeInput(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	p := d.interactive(t)
	size := channel.Size{Width: 80, Height: 25}
	a := d.attach(t, p, client.AttachOptions{Streams: client.Streams{Stdin: strings.NewReader(""), TTY: true, Size: size}})
	if _, err := a.stdin.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.stdin.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	last := attach.Size{}
	for len(p.sizes) > 0 {
		last = <-p.sizes
	}
	if want := (attach.Size{Width: 80, Height: 25}); last != want {
		t.Errorf("the first input arrived when the terminal had the size %v, want %v", last, want)
	}
}

// awaitSize waits until the terminal has a size.
func (p *process) awaitSize(t *testing.T, want attach.Size) {
	t.Helper()
	for {
		select {
		case got := <-p.sizes:
			if got == want {
				return
			}
		case <-time.After(testTimeout):
			t.Fatalf("the terminal did not get the size %v", want)
		}
	}
}

func TestAttachIsRejected(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.interactive(t)
	uid := d.create(t, file("job", "restartPolicy = \"Never\"\n"+app("main", "exit 3"))).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	stdin := client.Streams{Stdin: strings.NewReader("")}
	for _, tt := range []struct {
		name, pod string
		options   client.AttachOptions
		shim      error
		status    int
		reason    api.ErrorReason // default: that of the status
		want      string
	}{
		{name: "no pod", pod: "none", status: http.StatusNotFound, want: `no such pod "none"`},
		{
			name: "no container", pod: "web", options: client.AttachOptions{Container: "x"}, status: http.StatusNotFound,
			want: `has no container "x"`,
		},
		{name: "other pod", pod: "web", options: client.AttachOptions{UID: "x"}, status: http.StatusNotFound, want: "no such pod"},
		{
			name: "no stdin", pod: "web", options: client.AttachOptions{Container: "other", Streams: stdin}, status: http.StatusConflict,
			want: "does not have stdin",
		},
		{
			name: "no terminal", pod: "web", options: client.AttachOptions{Container: "other", Streams: client.Streams{TTY: true}},
			status: http.StatusConflict, want: "does not have a terminal",
		},
		{
			name: "terminated", pod: "job", status: http.StatusConflict, reason: api.ReasonNotRunning,
			want: `container "main" of pod "job" is not running: Error (exit code 3)`,
		},
		{
			name: "just exited", pod: "web", shim: &attach.Error{Reason: attach.NotFound}, status: http.StatusConflict,
			reason: api.ReasonNotRunning, want: "is not running",
		},
		{
			name: "removed", pod: "web", shim: lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no such container"},
			status: http.StatusConflict, reason: api.ReasonNotRunning,
			want: `container "main" of pod "web" is not running: no such container`,
		},
		{
			name: "unavailable", pod: "web", shim: lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "oops"},
			status: http.StatusInternalServerError, want: "oops",
		},
		{
			name: "used", pod: "web", shim: &attach.Error{Reason: attach.NoStdin, Message: "used"}, status: http.StatusConflict,
			want: `"main" of pod "web": used`,
		},
		{name: "old shim", pod: "web", shim: attach.ErrNoServer, status: http.StatusConflict, want: "serves no attach clients"},
		{name: "other error", pod: "web", shim: errors.New("oops"), status: http.StatusInternalServerError, want: "oops"},
	} {
		if tt.reason == "" {
			tt.reason = map[int]api.ErrorReason{
				http.StatusNotFound: api.ReasonNotFound, http.StatusConflict: api.ReasonConflict,
				http.StatusInternalServerError: api.ReasonInternalError,
			}[tt.status]
		}
		d.streams.err = tt.shim
		_, err := d.client.Attach(t.Context(), tt.pod, tt.options)
		e, ok := errors.AsType[*api.Error](err)
		if !ok || e.Status != tt.status || e.Reason != tt.reason || !strings.Contains(e.Message, tt.want) {
			t.Errorf("%s: %v (%+v); want %d and %q", tt.name, err, e, tt.status, tt.want)
		}
	}
	d.client.Close()
	d.closeServer()
	if _, err := d.client.Attach(t.Context(), "web", client.AttachOptions{}); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("attach without a daemon: %v", err)
	}
}
