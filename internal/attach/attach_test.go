package attach

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// testTimeout bounds what must happen; no test waits for it to pass.
const testTimeout = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a shim with one container, "c", whose output the test writes and whose input it reads.
type fixture struct {
	testing.TB
	dir            string
	server         *Server
	container      *Container
	stdout, stderr *os.File      // of the container
	stdin          *os.File      // of the container; nil: none
	log            *bytes.Buffer // the output that was read; valid after logged
	logged         chan struct{} // closed when stdout was read until EOF
	closedIO       atomic.Int32
	sizes          chan Size
}

// newFixture returns a container with standard input if once is not nil.
func newFixture(t testing.TB, once *bool) *fixture {
	t.Helper()
	f := &fixture{
		TB: t, dir: t.TempDir(), server: NewServer(), log: &bytes.Buffer{}, logged: make(chan struct{}), sizes: make(chan Size, 1),
	}
	o := Options{Terminal: true, Resize: func(s Size) error { f.sizes <- s; return nil }}
	if once != nil {
		path := filepath.Join(f.dir, "stdin")
		in, err := NewStdin(path, *once, func() error { f.closedIO.Add(1); return nil })
		if err != nil {
			t.Fatal(err)
		}
		o.Stdin = in
		f.stdin = must(os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0))
		in.Created()
	}
	f.container = NewContainer(o)
	var out, err *os.File
	out, f.stdout = pipe(t)
	err, f.stderr = pipe(t)
	stdout, stderr := f.container.Output(Stdout), f.container.Output(Stderr)
	read := make(chan struct{})
	go func() {
		defer close(f.logged)
		_, _ = io.Copy(io.MultiWriter(f.log, stdout), struct{ io.Reader }{out})
		_ = errors.Join(stdout.Close(), out.Close())
	}()
	go func() {
		defer close(read)
		_, _ = io.Copy(stderr, struct{ io.Reader }{err})
		_ = errors.Join(stderr.Close(), err.Close())
	}()
	f.server.Add("c", f.container)
	l, listenErr := Listen(filepath.Join(f.dir, Socket))
	if listenErr != nil {
		t.Fatal(listenErr)
	}
	served := make(chan error, 1)
	go func() { served <- f.server.Serve(l) }()
	t.Cleanup(func() {
		f.exit(0)
		f.server.Remove("c")
		<-f.logged
		<-read
		_ = l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if f.stdin != nil {
			_ = f.stdin.Close()
		}
		f.await("the end of all connections", func() bool {
			f.server.mu.Lock()
			defer f.server.mu.Unlock()
			return f.server.connections == 0
		})
	})
	return f
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func must(f *os.File, err error) *os.File {
	if err != nil {
		panic(err)
	}
	return f
}

func (f *fixture) await(what string, met func() bool) {
	f.Helper()
	for end := time.Now().Add(testTimeout); !met(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("timeout waiting for %s", what)
		}
	}
}

// exit ends the container.
func (f *fixture) exit(code uint32) {
	_ = f.stdout.Close()
	_ = f.stderr.Close()
	f.container.Exited(code)
}

// open opens a session with all streams that the container has, and waits until it has begun.
func (f *fixture) open(r Request) (*Session, error) {
	f.Helper()
	r.Container, r.Stdout, r.Stderr = "c", true, true
	s, err := Open(f.Context(), f.dir, r)
	if err == nil {
		f.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func (f *fixture) mustOpen(r Request) *Session {
	f.Helper()
	s, err := f.open(r)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) write(w io.Writer, text string) {
	f.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		f.Error(err)
	}
}

// readAll reads until the end of a session.
func readAll(s *Session) (stdout, stderr string, err error) {
	var out, errs strings.Builder
	for {
		stream, data, err := s.Next()
		if err != nil {
			return out.String(), errs.String(), err
		}
		if stream == Stdout {
			out.Write(data)
		} else {
			errs.Write(data)
		}
	}
}

func (f *fixture) wantEnd(s *Session, stdout, stderr string, code uint32) {
	f.Helper()
	gotOut, gotErr, err := readAll(s)
	exit, exited := errors.AsType[*ExitedError](err)
	if gotOut != stdout || gotErr != stderr || !exited || exit.Code != code {
		f.Errorf("got %q, %q, %v; want %q, %q, code %d", gotOut, gotErr, err, stdout, stderr, code)
	}
}

func yes() *bool { b := true; return &b }
func no() *bool  { return new(bool) }

// All clients get the output from now on, the streams separately, and the exit code.
func TestOutput(t *testing.T) {
	f := newFixture(t, nil)
	f.write(f.stdout, "before ")
	f.await("the output", func() bool { f.container.mu.Lock(); defer f.container.mu.Unlock(); return f.container.size > 0 })
	first := f.mustOpen(Request{FromStart: true})
	f.write(f.stdout, "prompt> ")
	if stream, data, err := first.Next(); stream != Stdout || string(data) != "before " || err != nil {
		t.Errorf("%q %q, %v; want the output before the first client", stream, data, err)
	}
	if stream, data, err := first.Next(); stream != Stdout || string(data) != "prompt> " || err != nil {
		t.Errorf("%q %q, %v", stream, data, err)
	}
	second := f.mustOpen(Request{FromStart: true})
	f.write(f.stderr, "a\x00\xff")
	for _, s := range []*Session{first, second} {
		if stream, data, err := s.Next(); stream != Stderr || string(data) != "a\x00\xff" || err != nil {
			t.Errorf("%q %q, %v", stream, data, err)
		}
	}
	f.write(f.stdout, "last")
	f.exit(7)
	f.wantEnd(first, "last", "", 7)
	f.wantEnd(second, "last", "", 7)
	if _, err := f.open(Request{}); reasonOf(err) != NotFound {
		t.Errorf("attach to a container that has exited: %v", err)
	}
}

func reasonOf(err error) Reason {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	return e.Reason
}

// The end is reported when the output is complete, also if processes that the container has left hold it open until it is deleted.
func TestEndAfterDelete(t *testing.T) {
	f := newFixture(t, nil)
	s := f.mustOpen(Request{})
	f.container.Exited(3)
	f.write(f.stdout, "orphan")
	if _, data, err := s.Next(); string(data) != "orphan" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	f.server.Remove("c")
	f.wantEnd(s, "", "", 3)
}

// A container that was never started has no exit code.
func TestDeletedBeforeStart(t *testing.T) {
	f := newFixture(t, nil)
	s := f.mustOpen(Request{})
	f.server.Remove("c")
	if _, _, err := readAll(s); err == nil || err.Error() != "the container was deleted" {
		t.Errorf("the session ended with %v", err)
	}
}

func TestRejectedRequests(t *testing.T) {
	f := newFixture(t, nil)
	if _, err := f.open(Request{Stdin: true}); reasonOf(err) != NoStdin {
		t.Errorf("standard input of a container without: %v", err)
	}
	if _, err := Open(t.Context(), f.dir, Request{Container: "d"}); reasonOf(err) != NotFound {
		t.Errorf("unknown container: %v", err)
	}
	if _, err := Open(t.Context(), t.TempDir(), Request{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("no socket: %v", err)
	}
	for range maxClients {
		f.mustOpen(Request{})
	}
	if _, err := f.open(Request{}); reasonOf(err) != TooMany {
		t.Errorf("one client too many: %v", err)
	}
}

// Frames that no client sends end the connection, and nothing else.
func TestInvalidRequests(t *testing.T) {
	f := newFixture(t, no())
	for _, garbage := range [][]byte{frame(kindStdin, nil), frame(kindRequest, []byte("x")), append([]byte{1}, 255, 255, 255, 255)} {
		s := f.mustOpen(Request{})
		if err := s.write(garbage); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	}
	s := f.mustOpen(Request{})
	if err := s.write(frame(kindExited, nil)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Next(); err == nil {
		t.Error("a frame that no client sends did not end the connection")
	}
	f.mustOpen(Request{Stdin: true})
}

// read reads n bytes of the container's standard input.
func (f *fixture) read(n int) string {
	f.Helper()
	b := make([]byte, n)
	_ = f.stdin.SetReadDeadline(time.Now().Add(testTimeout))
	got, err := io.ReadFull(f.stdin, b)
	if err != nil {
		f.Errorf("read standard input: %v", err)
	}
	return string(b[:got])
}

// Standard input stays open over clients. Their input is not lost when they have disconnected.
func TestStdinStaysOpen(t *testing.T) {
	f := newFixture(t, no())
	for _, text := range []string{"first", "second"} {
		s := f.mustOpen(Request{Stdin: true})
		f.write(s, text)
		if err := s.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		if got := f.read(len(text)); got != text {
			t.Errorf("the container read %q, want %q", got, text)
		}
		_ = s.Close()
	}
	_ = f.stdin.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := f.stdin.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without a client the container read %d bytes, %v", n, err)
	}
	if n := f.closedIO.Load(); n != 0 {
		t.Errorf("the task service was told %d times", n)
	}
}

// With stdinOnce, the container gets EOF when the first client closes its input or disconnects.
func TestStdinOnce(t *testing.T) {
	for name, end := range map[string]func(*Session) error{"closed": (*Session).CloseStdin, "disconnected": (*Session).Close} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, yes())
			f.mustOpen(Request{}) // without input
			s := f.mustOpen(Request{Stdin: true})
			if _, err := f.open(Request{Stdin: true}); reasonOf(err) != NoStdin {
				t.Errorf("a second client with input: %v", err)
			}
			f.write(s, "text")
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			_ = f.stdin.SetReadDeadline(time.Now().Add(testTimeout))
			if text, err := io.ReadAll(f.stdin); string(text) != "text" || err != nil {
				t.Errorf("the container read %q, %v", text, err)
			}
			f.await("the task service", func() bool { return f.closedIO.Load() == 1 })
			if _, err := f.open(Request{Stdin: true}); reasonOf(err) != NoStdin {
				t.Errorf("a later client with input: %v", err)
			}
		})
	}
}

// A container that does not read its input holds up the client, and neither its output, nor sizes, nor its end. The client can disconnect.
func TestStdinThatIsNotRead(t *testing.T) {
	f := newFixture(t, no())
	s := f.mustOpen(Request{Stdin: true})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Write(make([]byte, 10<<20))
	}()
	f.write(f.stdout, "output")
	if _, data, err := s.Next(); string(data) != "output" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	_ = s.Close()
	<-done
	f.await("the end of the connection", func() bool {
		f.server.mu.Lock()
		defer f.server.mu.Unlock()
		return f.server.connections == 0
	})
}

// Input for a container that has closed its standard input is discarded.
func TestStdinClosedByContainer(t *testing.T) {
	f := newFixture(t, no())
	s := f.mustOpen(Request{Stdin: true})
	f.write(s, "x")
	f.read(1)
	_ = f.stdin.Close()
	f.write(s, strings.Repeat("y", 10*maxPayload))
	f.write(f.mustOpen(Request{Stdin: true}), strings.Repeat("z", 10*maxPayload))
	f.exit(1)
	f.wantEnd(s, "", "", 1)
}

func TestResize(t *testing.T) {
	f := newFixture(t, nil)
	want := Size{Width: 132, Height: 43}
	if err := f.mustOpen(Request{}).Resize(want); err != nil {
		t.Fatal(err)
	}
	if got := <-f.sizes; got != want {
		t.Errorf("size %v, want %v", got, want)
	}
}

// A client that does not read is disconnected with the reason. The container goes on, the log is complete, and the other client gets all.
func TestClientThatStopsReading(t *testing.T) {
	f := newFixture(t, nil)
	stopped, reading := f.mustOpen(Request{}), f.mustOpen(Request{})
	sum := make(chan [32]byte, 1)
	go func() {
		text, _, _ := readAll(reading)
		sum <- sha256.Sum256([]byte(text))
	}()
	data := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for range 4 {
		if _, err := f.stdout.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	f.exit(0)
	want := sha256.Sum256(bytes.Repeat(data, 4))
	if got := <-sum; got != want {
		t.Error("the client that reads did not get all output")
	}
	if <-f.logged; sha256.Sum256(f.log.Bytes()) != want {
		t.Error("the log is not complete")
	}
	got, _, err := readAll(stopped)
	if _, ok := errors.AsType[*DisconnectedError](err); !ok || !strings.HasPrefix(string(bytes.Repeat(data, 4)), got) {
		t.Errorf("the client that stopped got %d bytes, %v", len(got), err)
	}
}

// What an exited container has left in its pipes reaches its clients without delay, and a client that does not read delays nothing.
func TestExitWithFullQueue(t *testing.T) {
	f := newFixture(t, nil)
	f.mustOpen(Request{}) // does not read
	f.container.Exited(0)
	if _, err := f.stdout.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_ = f.stdout.Close()
	<-f.logged
	if took := time.Since(start); took >= WriteTimeout {
		t.Errorf("the rest of the log took %v", took)
	}
}

// Output before the first client is kept up to a limit.
func TestKeptOutput(t *testing.T) {
	f := newFixture(t, nil)
	f.write(f.stdout, strings.Repeat("x", 2*keptOutput)+"end")
	f.await("the output", func() bool {
		f.container.mu.Lock()
		defer f.container.mu.Unlock()
		return f.container.dropped && bytes.HasSuffix(f.container.kept[len(f.container.kept)-1], []byte("end"))
	})
	s := f.mustOpen(Request{FromStart: true})
	f.exit(0)
	if text, _, _ := readAll(s); !s.Incomplete || len(text) > keptOutput+maxPayload || !strings.HasSuffix(text, "end") {
		t.Errorf("%d bytes, incomplete %v", len(text), s.Incomplete)
	}
}

// A session of a server that is lost, and whose containers keep running, ends with the reason, and not if the client has closed it.
func TestServerLost(t *testing.T) {
	for _, closed := range []bool{false, true} {
		ours, theirs := net.Pipe()
		s := &Session{Lost: "restarted", conn: ours, in: bufio.NewReader(ours), buf: make([]byte, maxPayload)}
		_ = theirs.Close()
		if closed {
			ours, listener := dialed(t)
			_ = listener.Close()
			s.conn, s.in = ours, bufio.NewReader(ours)
			_ = s.Close()
		}
		_, _, err := s.Next()
		if lost, ok := errors.AsType[*DisconnectedError](err); ok == closed || ok && lost.Reason != "restarted" || err == nil {
			t.Errorf("closed %v: %v", closed, err)
		}
	}
}

// dialed returns a connection to a listener.
func dialed(t *testing.T) (net.Conn, net.Listener) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return c, l
}
