package connect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/podstead/podstead/api/channel"
)

// testTimeout bounds what must happen; no test waits for it to pass.
const testTimeout = time.Minute

// open returns both ends of a pseudo-terminal of 80 columns and 25 lines.
func open(t *testing.T) (user, terminal *os.File) {
	t.Helper()
	user, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		user.Close()
		terminal.Close()
	})
	if err := pty.Setsize(user, &pty.Winsize{Rows: 25, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	return user, terminal
}

// state returns the settings of a terminal.
func state(t *testing.T, f *os.File) term.State {
	t.Helper()
	s, err := term.GetState(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func TestRunRestoresTerminal(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		run  func(context.Context, Session) error
		want error
	}{
		{"success", func(context.Context, Session) error { return nil }, nil},
		{"failure", func(context.Context, Session) error { return failed }, failed},
		{"panic", func(context.Context, Session) error { panic(failed) }, failed},
		{"signal", func(ctx context.Context, _ Session) error {
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, &SignalError{syscall.SIGHUP}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, f := open(t)
			before := state(t, f)
			err := func() (err error) {
				defer func() {
					if v, ok := recover().(error); ok {
						err = v
					}
				}()
				return Terminal(t.Context(), TerminalOptions{In: f, Raw: true}, func(ctx context.Context, s Session) error {
					if state(t, f) == before {
						t.Error("the terminal is not in raw mode")
					}
					if s.Size != (channel.Size{Width: 80, Height: 25}) {
						t.Errorf("size %v", s.Size)
					}
					return tt.run(ctx, s)
				})
			}()
			if (err == nil) != (tt.want == nil) || err != nil && err.Error() != tt.want.Error() {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if state(t, f) != before {
				t.Error("the terminal was not restored")
			}
		})
	}
}

// The second signal ends the program, even if the session does not react to the first one.
func TestSecondSignalKills(t *testing.T) {
	_, f := open(t)
	before := state(t, f)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), deafVariable+"=1")
	child.Stdin = f
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(testTimeout, func() { _ = child.Process.Kill() }).Stop()
	t.Cleanup(func() { _ = child.Process.Kill() }) // after a failure
	lines := bufio.NewScanner(out)
	for _, want := range []string{"running", "ended"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, %v, want %q", lines.Text(), lines.Err(), want)
		}
		if err := child.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("%v, want SIGTERM", exit)
	}
	if state(t, f) != before {
		t.Error("the terminal was not restored")
	}
}

// deafVariable makes the test program the one that TestSecondSignalKills ends.
const deafVariable = "PODSTEAD_TEST_DEAF"

func TestMain(m *testing.M) {
	if os.Getenv(deafVariable) != "" {
		deafSession()
	}
	os.Exit(m.Run())
}

// deafSession is a session that does not react to the end of its context.
func deafSession() {
	err := Terminal(context.Background(), TerminalOptions{In: os.Stdin, Raw: true}, func(ctx context.Context, _ Session) error {
		fmt.Println("running")
		<-ctx.Done()
		fmt.Println("ended")
		select {}
	})
	fmt.Println(err)
	os.Exit(1)
}

func TestSignalExitCode(t *testing.T) {
	if got := (&SignalError{syscall.SIGTERM}).ExitCode(); got != 143 {
		t.Errorf("exit code %d for SIGTERM", got)
	}
}

// A session that succeeds although a signal has arrived has succeeded.
func TestRunSucceedsAfterSignal(t *testing.T) {
	err := Terminal(t.Context(), TerminalOptions{}, func(ctx context.Context, s Session) error {
		if s.In != nil || s.Resize != nil {
			t.Errorf("%+v, want a session without input and terminal", s)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestResize(t *testing.T) {
	user, f := open(t)
	err := Terminal(t.Context(), TerminalOptions{In: f, Raw: true}, func(_ context.Context, s Session) error {
		if err := pty.Setsize(user, &pty.Winsize{Rows: 50, Cols: 132}); err != nil {
			return err
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil { // it is not the terminal of the test's process
			return err
		}
		select {
		case size := <-s.Resize:
			if size != (channel.Size{Width: 132, Height: 50}) {
				t.Errorf("size %v", size)
			}
		case <-time.After(testTimeout):
			t.Error("no new size")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDetach(t *testing.T) {
	user, f := open(t)
	keys, err := ParseKeys(DefaultDetachKeys)
	if err != nil {
		t.Fatal(err)
	}
	err = Terminal(t.Context(), TerminalOptions{In: f, Raw: true, DetachKeys: keys}, func(ctx context.Context, s Session) error {
		if _, err := user.WriteString("typed\x10\x11not read"); err != nil {
			return err
		}
		if got, err := io.ReadAll(s.In); string(got) != "typed" || !errors.Is(err, ErrDetached) {
			t.Errorf("the session read %q, %v", got, err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, ErrDetached) {
		t.Error(err)
	}
}

func TestDetacher(t *testing.T) {
	for _, tt := range []struct {
		name, keys, typed, want string
		detached                bool
	}{
		{"other keys", "pq", "abc", "abc", false},
		{"part of the keys", "pq", "pxp", "pxp", false},
		{"keys", "pq", "apqb", "a", true},
		{"keys after a part of them", "pq", "ppq", "p", true},
		{"keys that overlap", "aab", "aaaab", "aa", true},
		{"one key", "x", "yx", "y", true},
	} {
		for _, oneByte := range []bool{false, true} {
			var in io.Reader = strings.NewReader(tt.typed)
			if oneByte {
				in = iotest.OneByteReader(in)
			}
			detached := false
			d := &detacher{in: in, keys: []byte(tt.keys), detach: func() { detached = true }}
			var first []byte
			if tt.detached { // the keys before are taken first
				first = make([]byte, 1)
				if _, err := d.Read(first); err != nil || detached {
					t.Errorf("%s: first key: %v, detached %v", tt.name, err, detached)
				}
			}
			rest, err := io.ReadAll(d)
			if got := append(first, rest...); string(got) != tt.want || detached != tt.detached ||
				errors.Is(err, ErrDetached) != tt.detached {
				t.Errorf("%s: %q, detached %v, %v; want %q, %v", tt.name, got, detached, err, tt.want, tt.detached)
			}
		}
	}
	failed := errors.New("failed")
	d := &detacher{in: io.MultiReader(strings.NewReader("p"), iotest.ErrReader(failed)), keys: []byte("pq"), detach: func() {}}
	if got, err := io.ReadAll(d); string(got) != "p" || !errors.Is(err, failed) {
		t.Errorf("%q, %v after an error", got, err)
	}
}

func TestParseKeys(t *testing.T) {
	for text, want := range map[string][]byte{
		"ctrl-p,ctrl-q": {0x10, 0x11}, "": nil, "a": {'a'}, "ctrl-@,ctrl-_,Z": {0, 0x1f, 'Z'}, "ctrl-A": {1},
	} {
		if got, err := ParseKeys(text); !bytes.Equal(got, want) || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{",", "ctrl-", "ctrl-1", "ab", "ctrl-pq", "\x01", "ö"} {
		if got, err := ParseKeys(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestNotATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, in := range []io.Reader{r, strings.NewReader("")} {
		if IsTerminal(in) {
			t.Errorf("%T is a terminal", in)
		}
		err := Terminal(t.Context(), TerminalOptions{In: in, Raw: true}, func(context.Context, Session) error {
			t.Error("the session was run")
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "set terminal to raw mode: ") {
			t.Error(err)
		}
	}
	_, f := open(t)
	if !IsTerminal(f) {
		t.Error("a pseudo-terminal is not a terminal")
	}
}

// With KeepOnSignal, a signal is left to the caller.
func TestKeepOnSignal(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	err := Terminal(t.Context(), TerminalOptions{KeepOnSignal: true}, func(ctx context.Context, _ Session) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			return err
		}
		<-signals
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}
