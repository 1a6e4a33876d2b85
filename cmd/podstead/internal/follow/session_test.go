package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/creack/pty"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
)

// daemon is a daemon with the container c of the pod p. Each call of Attach is the next function.
type daemon struct {
	state   api.ContainerState
	lines   []string
	attach  []func(ctx context.Context, o client.AttachOptions) (int, error)
	watches []error // of the first calls of Watch
}

func (d *daemon) podOf() api.Pod {
	return api.Pod{
		Metadata: api.Metadata{Name: "p", UID: "u"},
		Status:   api.PodStatus{ContainerStatuses: []api.ContainerStatus{{Name: "c", State: d.state}}},
	}
}

func (d *daemon) PodWithUID(context.Context, string, string) (api.Pod, error) {
	if d.state == (api.ContainerState{}) {
		return api.Pod{}, &api.Error{Status: http.StatusNotFound}
	}
	return d.podOf(), nil
}

func (d *daemon) Attach(ctx context.Context, _ string, o client.AttachOptions) (int, error) {
	next := d.attach[0]
	d.attach = d.attach[1:]
	return next(ctx, o)
}

func (d *daemon) Watch(context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		if len(d.watches) > 0 {
			err := d.watches[0]
			d.watches = d.watches[1:]
			yield(api.PodChange{}, err)
			return
		}
		if d.state != (api.ContainerState{}) && !yield(api.PodChange{Type: api.Added, Object: d.podOf()}, nil) {
			return
		}
		yield(api.PodChange{Type: api.Listed}, nil)
	}
}

func (d *daemon) Output(context.Context, string, client.OutputQuery) iter.Seq2[api.Line, error] {
	return func(yield func(api.Line, error) bool) {
		for _, l := range d.lines {
			if !yield(api.Line{Container: "c", Stream: "stdout", Line: l}, nil) {
				return
			}
		}
	}
}

func (d *daemon) Events(context.Context, *client.EventQuery) iter.Seq2[api.Event, error] { return nil }

var running = api.ContainerState{Running: &api.Running{}}

// served is a session that has ended.
type served struct {
	*session
	out     bytes.Buffer
	notices []string
}

// serve runs a session with an input.
func serve(t *testing.T, d *daemon, in io.Reader) (*served, error) {
	t.Helper()
	x := &served{}
	x.session = &session{
		SessionOptions: SessionOptions{
			Daemon: d, Container: "c", In: in, Out: &x.out, Err: io.Discard, Screen: &Screen{Writer: io.Discard},
		},
		notice: func(m string) { x.notices = append(x.notices, m) },
		pod:    d.podOf(),
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return x, x.serve(ctx)
}

type call = func(context.Context, client.AttachOptions) (int, error)

func exits(code int, out string) call {
	return func(_ context.Context, o client.AttachOptions) (int, error) {
		_, err := io.WriteString(o.Stdout, out)
		return code, err
	}
}

func fails(err error) call {
	return func(context.Context, client.AttachOptions) (int, error) { return 0, err }
}

// reads reads input up to n bytes, then fails.
func reads(n int64, err error) call {
	return func(_ context.Context, o client.AttachOptions) (int, error) {
		_, _ = io.Copy(io.Discard, io.LimitReader(o.Stdin, n))
		return 0, err
	}
}

// writes writes output, then fails.
func writes(out string, err error) call {
	return func(_ context.Context, o client.AttachOptions) (int, error) {
		_, _ = io.WriteString(o.Stdout, out)
		return 0, err
	}
}

var (
	errLost         = fmt.Errorf("%w: reset", api.ErrUnavailable)
	errNotRunning   = &api.Error{Status: http.StatusConflict, Reason: api.ReasonNotRunning}
	errDisconnected = &api.Error{Status: http.StatusConflict, Reason: api.ReasonDisconnected, Message: "too slow"}
	errRefused      = &api.Error{Status: http.StatusConflict, Message: "refused"}
)

func TestServe(t *testing.T) {
	const again = `connection to the daemon lost, container "c" keeps running; attaching again`
	for name, tt := range map[string]struct {
		calls   []call
		out     string
		notices []string
		lost    bool
		err     error
	}{
		"exits":                {calls: []call{exits(3, "out")}, out: "out"},
		"not connected":        {calls: []call{fails(errLost), exits(3, "out")}, out: "out", notices: []string{again}},
		"lost in the input":    {calls: []call{reads(2, errLost), exits(3, "")}, notices: []string{again}, lost: true},
		"lost after the input": {calls: []call{reads(100, errLost), exits(3, "")}, notices: []string{again}},
		"too slow": {
			calls: []call{writes("a", errDisconnected), exits(3, "b")}, out: "ab",
			notices: []string{`container "c": too slow; attaching again, a part of its output is missing`},
		},
		"exited before": {calls: []call{fails(errNotRunning)}, out: "log\n"},
		"exited while lost": {
			calls: []call{writes("a", errLost), fails(errNotRunning)}, out: "a",
			notices: []string{again, `container "c" exited while it was not attached, the end of its output is missing`},
		},
		"refused once":               {calls: []call{fails(errRefused), exits(3, "out")}, out: "out"},
		"refused":                    {calls: slices.Repeat([]call{fails(errRefused)}, maxRefused+1), err: errRefused},
		"other error, again running": {calls: []call{fails(io.ErrShortWrite), exits(3, "")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &daemon{state: running, attach: tt.calls, lines: []string{"log"}}
			x, err := serve(t, d, strings.NewReader("input"))
			if !errors.Is(err, tt.err) || err != nil && tt.err == nil {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if x.out.String() != tt.out || !slices.Equal(x.notices, tt.notices) || x.result.InputLost != tt.lost || len(d.attach) > 0 {
				t.Errorf("output %q, notices %q, input lost %v, %d calls left", x.out.String(), x.notices, x.result.InputLost,
					len(d.attach))
			}
		})
	}
}

// A container that exited before the session prints its log. One that never ran is left to the run.
func TestServeTerminated(t *testing.T) {
	for name, tt := range map[string]struct {
		state   api.ContainerState
		out     string
		started bool
	}{
		"exited":      {api.ContainerState{Terminated: &api.Terminated{ExitCode: 4, StartedAt: time.Now()}}, "log\n", true},
		"did not run": {api.ContainerState{Terminated: &api.Terminated{ExitCode: 128}}, "", false},
		"deleted":     {api.ContainerState{}, "", false},
	} {
		d := &daemon{state: tt.state, lines: []string{"log"}, watches: []error{errLost}}
		x, err := serve(t, d, strings.NewReader(""))
		final := d.podOf()
		x.final = &final
		result, endErr := x.end(nil)
		if err != nil || endErr != nil || x.out.String() != tt.out || result.Started != tt.started || result.Started && result.Code != 4 {
			t.Errorf("%s: %v, %v, %q, %+v", name, err, endErr, x.out.String(), result)
		}
	}
	if _, err := serve(t, &daemon{watches: []error{errRefused}}, nil); !errors.Is(err, errRefused) {
		t.Error(err)
	}
}

// TestEnd: the exit code of the container replaces the reports how the pod terminated, and no other error.
func TestEnd(t *testing.T) {
	other := errors.New("other")
	for _, tt := range []struct {
		err  error
		want error
	}{
		{nil, nil},
		{errors.Join(fmt.Errorf("pod: %w", ErrFailed)), nil},
		{errors.Join(ErrStopped, nil), nil},
		{errors.Join(ErrFailed, other), other},
		{errors.Join(ErrTimeout), ErrTimeout},
		{errInterrupted, errInterrupted},
	} {
		s := &session{result: Result{Started: true, Code: 3}}
		if result, err := s.end(tt.err); !errors.Is(err, tt.want) || result.Code != 3 {
			t.Errorf("%v: %v", tt.err, err)
		}
		s.err = other
		if _, err := s.end(tt.err); !errors.Is(err, other) {
			t.Errorf("%v: %v, want the error of the session", tt.err, err)
		}
	}
}

// The next connection gets the input that the last one has not read. The end of a connection is not the end of the input.
func TestInput(t *testing.T) {
	r, w := io.Pipe()
	in := newInput(r)
	ctx, cancel := context.WithCancel(t.Context())
	first := in.reader(ctx)
	if in.used() {
		t.Error("the input is used")
	}
	go func() { _, _ = io.WriteString(w, "one") }()
	p := make([]byte, 2)
	if n, err := io.ReadFull(first, p); n != 2 || err != nil || !in.used() {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := first.Read(p); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	cancel()
	if _, err := first.Read(p); !errors.Is(err, context.Canceled) || in.ended() {
		t.Errorf("%v at the end of the connection", err)
	}
	go func() {
		_, _ = io.WriteString(w, "two")
		_ = w.Close()
	}()
	if got, err := io.ReadAll(in.reader(t.Context())); string(got) != "two" || err != nil || !in.ended() {
		t.Errorf("%q, %v", got, err)
	}
	failed := errors.New("failed")
	if _, err := io.ReadAll(newInput(iotest.ErrReader(failed)).reader(t.Context())); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// The next connection gets the current size.
func TestSizes(t *testing.T) {
	changes := make(chan channel.Size)
	s := newSizes(connect.Session{Size: channel.Size{Width: 1}, Resize: changes})
	ctx, cancel := context.WithCancel(t.Context())
	size, resize := s.follow(ctx)
	changes <- channel.Size{Width: 2}
	if next := <-resize; size.Width != 1 || next.Width != 2 {
		t.Errorf("%v, then %v", size, next)
	}
	cancel()
	if size, _ := s.follow(t.Context()); size.Width != 2 {
		t.Errorf("%v after a change", size)
	}
	if _, resize := newSizes(connect.Session{}).follow(t.Context()); resize != nil {
		t.Error("there are changes without a terminal")
	}
}

// The detach keys end the session, also while it is not attached. What a run prints until then has carriage returns.
func TestDetach(t *testing.T) {
	keyboard, f, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = keyboard.Close()
		_ = f.Close()
	})
	var screen bytes.Buffer
	s := &session{
		SessionOptions: SessionOptions{
			Container: "c", In: f, Out: io.Discard, Err: io.Discard, Screen: &Screen{Writer: &screen}, TTY: true, DetachKeys: []byte("q"),
		},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.notice = func(m string) { fmt.Fprintln(s.Screen, m) }
	lost := 0
	d := &daemon{state: running}
	d.attach = []func(context.Context, client.AttachOptions) (int, error){func(context.Context, client.AttachOptions) (int, error) {
		lost++
		return 0, errLost
	}, func(ctx context.Context, _ client.AttachOptions) (int, error) {
		_, _ = keyboard.WriteString("q")
		<-ctx.Done()
		return 0, ctx.Err()
	}}
	s.Daemon, s.pod = d, d.podOf()
	s.run(t.Context(), s.pod)
	<-s.stop
	want := "\r\nconnection to the daemon lost, container \"c\" keeps running; attaching again\r\ndetached, stopping the pod\n"
	if s.err != nil || screen.String() != want || lost != 1 {
		t.Errorf("%v, the screen shows %q, want %q", s.err, screen.String(), want)
	}
}

// sessionRecorder records what it prints.
type sessionRecorder struct {
	Printer
	printed []string
}

func (r *sessionRecorder) Line(_ string, l api.Line) { r.printed = append(r.printed, l.Line) }
func (r *sessionRecorder) Event(e api.Event)         { r.printed = append(r.printed, e.Message) }
func (r *sessionRecorder) Notice(m string)           { r.printed = append(r.printed, m) }

func TestPrinter(t *testing.T) {
	for _, tt := range []struct {
		tty, begun bool
		want       []string
	}{
		{false, false, []string{"other", "normal", "warning", wait.Reconnected, "notice"}},
		{false, true, []string{"other", "normal", "warning", "notice"}},
		{true, false, []string{"warning", wait.Reconnected, "notice"}},
		{true, true, []string{"notice"}},
	} {
		r := &sessionRecorder{}
		s := &session{SessionOptions: SessionOptions{Container: "c", TTY: tt.tty}}
		s.begun.Store(tt.begun)
		p := &sessionPrinter{Printer: r, session: s}
		p.Line("p", api.Line{Container: "c", Line: "own"})
		p.Line("p", api.Line{Container: "other", Line: "other"})
		p.Event(api.Event{Level: api.EventNormal, Message: "normal"})
		p.Event(api.Event{Level: api.EventWarning, Message: "warning"})
		p.Notice(wait.Reconnected)
		p.Notice("notice")
		if !slices.Equal(r.printed, tt.want) {
			t.Errorf("terminal %v, begun %v: %q, want %q", tt.tty, tt.begun, r.printed, tt.want)
		}
	}
}
