package exec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The messages are those of runc and crun. A shell has the same exit codes.
func TestSessionError(t *testing.T) {
	const failed = "rpc error: OCI runtime exec failed: "
	for _, tt := range []struct {
		name, message string
		exited        bool
		code          int
		kind          lifecycle.FailureKind
	}{
		{
			"not in the path", failed + `exec failed: unable to start container process: exec: "x": executable file not found in $PATH`,
			false, 127, "",
		},
		{
			"no such file", failed + `exec failed: unable to start container process: exec: "/x": stat /x: no such file or directory`,
			false, 127, "",
		},
		{"crun", failed + "exec failed: executable file `x` not found in $PATH: No such file or directory", false, 127, ""},
		{"not executable", failed + `exec failed: unable to start container process: exec: "/x": permission denied`, false, 126, ""},
		{"directory", failed + `exec failed: unable to start container process: exec: "/": is a directory`, false, 126, ""},
		{"other architecture", failed + "exec failed: unable to start container process: exec /x: exec format error", false, 126, ""},
		{
			"other failure of the runtime", failed + "exec failed: unable to start container process: cgroup is frozen", false, 0,
			lifecycle.FailureRetry,
		},
		{"failure of the engine", "open /run/fifo: no such file or directory", false, 0, lifecycle.FailureRetry},
		{"exited container", failed + "cannot exec in a stopped container: no such file or directory", true, 0, lifecycle.FailureNotFound},
	} {
		err := request{}.sessionError(t.Context(), errors.New(tt.message), tt.exited)
		start, found := errors.AsType[*session.StartError](err)
		if found != (tt.code != 0) ||
			found && (start.Code != tt.code || !strings.HasPrefix(tt.message, failed) || start.Message != tt.message[len(failed):]) {
			t.Errorf("%s: %#v, want code %d", tt.name, err, tt.code)
		}
		if f, _ := errors.AsType[lifecycle.Failure](err); f.Kind != tt.kind {
			t.Errorf("%s: %v is a failure of kind %q, want %q", tt.name, err, f.Kind, tt.kind)
		}
	}
}

func TestEditSession(t *testing.T) {
	args := []string{"sh"}
	for _, tt := range []struct {
		name string
		c    session.Command
		env  []string
		want specs.Process
	}{
		{"without a terminal", session.Command{Args: args}, nil, specs.Process{Args: args}},
		{
			"terminal",
			session.Command{Args: args, TTY: true, Size: session.Size{Width: 80, Height: 25}},
			[]string{"A=1"},
			specs.Process{Args: args, Terminal: true, ConsoleSize: &specs.Box{Width: 80, Height: 25}, Env: []string{"A=1", "TERM=xterm"}},
		},
		{
			"terminal of the container",
			session.Command{Args: args, TTY: true},
			[]string{"TERM=linux"},
			specs.Process{Args: args, Terminal: true, Env: []string{"TERM=linux"}},
		},
	} {
		p := specs.Process{Args: []string{"web"}, Terminal: true, ConsoleSize: &specs.Box{}, Env: tt.env}
		editSession(&p, &tt.c)
		if diff := cmp.Diff(tt.want, p); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The mark of a command must be its last variable, also after those of its terminal.
func TestMarkIsLast(t *testing.T) {
	container, env := &specs.Process{Args: []string{"web"}}, []string{"A=1"}
	p := processOf(container, env, mark{"0123abcd", 7, attached}, func(p *specs.Process) {
		editSession(p, &session.Command{Args: []string{"sh"}, TTY: true})
	})
	want := &specs.Process{Args: []string{"sh"}, Terminal: true, Env: []string{"A=1", "TERM=xterm", "PODSTEAD_EXEC=0123abcd-7-session"}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&specs.Process{Args: []string{"web"}}, container); diff != "" {
		t.Errorf("the process of the container was changed (-want +got):\n%s", diff)
	}
}

// openStreams returns streams with their FIFOs, of which the test is the shim.
func openStreams(t *testing.T, c *session.Command) (s *streams, stdin, stdout, stderr *os.File) {
	t.Helper()
	s = newStreams(c)
	dir := t.TempDir()
	ends, err := s.creator(t.Context(), dir)("id")
	if err != nil {
		t.Fatal(err)
	}
	open := func(path string, flag int) *os.File {
		if path == "" {
			return nil
		}
		f, err := os.OpenFile(path, flag, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	config := ends.Config()
	stdin, stdout, stderr = open(config.Stdin, os.O_RDONLY), open(config.Stdout, os.O_WRONLY), open(config.Stderr, os.O_WRONLY)
	t.Cleanup(func() {
		for _, f := range []*os.File{stdin, stdout, stderr} {
			if f != nil {
				f.Close()
			}
		}
		ends.Cancel()
		ends.Wait()
		if err := ends.Close(); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 || err != nil {
			t.Errorf("files %q, %v after the end", left, err)
		}
	})
	return s, stdin, stdout, stderr
}

func TestStreams(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<14) // more than a pipe holds
	var out, errs bytes.Buffer
	s, stdin, stdout, stderr := openStreams(t, &session.Command{Stdin: bytes.NewReader(data), Stdout: &out, Stderr: &errs})
	s.start()
	written := s.feed()
	if got, err := io.ReadAll(stdin); !bytes.Equal(got, data) || err != nil {
		t.Errorf("%d bytes of input, %v; want %d", len(got), err, len(data))
	}
	<-written
	for _, f := range []*os.File{stdout, stderr} {
		if _, err := f.Write(data); err != nil {
			t.Error(err)
		}
		f.Close()
	}
	s.Wait()
	if !bytes.Equal(out.Bytes(), data) || !bytes.Equal(errs.Bytes(), data) || s.progress() != int64(2*len(data)) || s.busy() {
		t.Errorf("%d and %d bytes of output, %d received", out.Len(), errs.Len(), s.progress())
	}
}

// The error that an OCI runtime writes to the streams of a command that it cannot start does not reach the client.
func TestStreamsWithoutStart(t *testing.T) {
	var out, errs bytes.Buffer
	s, _, _, stderr := openStreams(t, &session.Command{Stdout: &out, Stderr: &errs})
	if _, err := stderr.WriteString("exec failed"); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	s.Cancel()
	s.Wait()
	if out.Len()+errs.Len() > 0 {
		t.Errorf("the client gets %q and %q", &out, &errs)
	}
}

// Input that the command does not read is read nevertheless, and its end does not close a terminal.
func TestStreamsOfTerminal(t *testing.T) {
	input, typing := io.Pipe()
	s, stdin, _, stderr := openStreams(t, &session.Command{TTY: true, Stdin: input})
	if written := s.feed(); written != nil || stderr != nil {
		t.Error("a terminal has stderr, or an end of the input")
	}
	if _, err := typing.Write([]byte("typed")); err != nil {
		t.Error(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(stdin, got); string(got) != "typed" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	stdin.Close()
	for range 4 {
		if _, err := typing.Write(make([]byte, copySize)); err != nil {
			t.Error(err)
		}
	}
	if err := typing.Close(); err != nil {
		t.Error(err)
	}
}

// A client that is gone does not stop the output.
func TestSink(t *testing.T) {
	var kept bytes.Buffer
	s := &sink{w: &kept}
	for _, text := range []string{"a", "b", "c"} {
		if n, err := s.Write([]byte(text)); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if text == "b" {
			s.detached.Store(true)
		}
	}
	if kept.String() != "ab" || s.received.Load() != 3 {
		t.Errorf("%q of %d bytes", &kept, s.received.Load())
	}
	r, w := io.Pipe()
	r.Close()
	gone := &sink{w: w}
	if n, err := gone.Write([]byte("a")); n != 1 || err != nil || !gone.detached.Load() {
		t.Errorf("%d, %v after the client was lost", n, err)
	}
	if n, err := (&sink{}).Write([]byte("a")); n != 1 || err != nil {
		t.Errorf("%d, %v without a client", n, err)
	}
}

// A session whose daemon stops waits for no output.
func TestDrainSessionEnds(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for name, x := range map[string]struct{ output, closing chan struct{} }{
		"output closed": {closed, nil},
		"daemon stops":  {nil, closed},
	} {
		done := make(chan struct{})
		go func() {
			(&execution{outputClosed: x.output}).drainSession(t.Context(), &streams{}, x.closing)
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("%s: still waits", name)
		}
	}
}
