package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/proc"
)

const testTimeout = 2 * time.Minute

// brokenSource panics when details are requested, or has details with which the screen panics.
type brokenSource struct {
	*fakeSource

	detail *live.Detail // nil: it panics
}

func (b brokenSource) Pod(context.Context, string, *time.Location) (*live.Detail, error) {
	if b.detail == nil {
		panic("broken")
	}
	return b.detail, nil
}

// output is what a program has written to a terminal.
type output struct {
	mu   sync.Mutex
	text string
}

func (o *output) read(from *os.File) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		o.mu.Lock()
		o.text += string(buffer[:n])
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits for texts, in their order, and returns all output.
func (o *output) await(t *testing.T, wanted ...string) (text string) {
	t.Helper()
	timeout := time.After(testTimeout)
	for tick := time.Tick(10 * time.Millisecond); ; {
		o.mu.Lock()
		text = o.text
		o.mu.Unlock()
		rest, found := text, true
		for _, want := range wanted {
			var is bool
			_, rest, is = strings.Cut(rest, want)
			found = found && is
		}
		if found {
			return text
		}
		select {
		case <-tick:
		case <-timeout:
			t.Fatalf("the terminal has no %q: %q", wanted, text)
		}
	}
}

// TestTerminalRestored checks that the terminal is as before after all ways to end the program.
func TestTerminalRestored(t *testing.T) {
	requested := errors.New("requested")
	unexplained := crashed() // the screen panics, since a restart has a cause
	unexplained.Containers[0].RestartCauses[0].Cause = nil
	for name, end := range map[string]struct {
		keys   string
		shell  string // a script
		shown  string // on the screen before the context ends
		cause  error  // of the end of the context
		want   error
		detail *live.Detail
		panics bool
	}{
		"quit":            {keys: "q"},
		"Ctrl-C":          {keys: "\x03"},
		"signal":          {cause: requested, want: requested},
		"panic":           {keys: "\r", panics: true},
		"panic of screen": {keys: "\r", detail: unexplained, panics: true},
		"within shell": {
			keys: "sy", shell: "echo in-$((1+1)); exec sleep 1000000", shown: "in-2", cause: requested, want: requested,
		},
		"after shell": {keys: "sy", shell: "exit 0", shown: "has exited", cause: requested, want: requested},
		"after exit 3": {
			keys: "sy", shell: "echo podstead: command terminated with exit code 3 >&2; exit 3",
			shown: "the shell in pod/crash exited with exit code 3", cause: requested, want: requested,
		},
		"after error": {
			keys: "sy", shell: "echo podstead: no such container >&2; exit 1", shown: `exec pod "crash": no such container`,
			cause: requested, want: requested,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMUX", "") // it would change what the program asks the terminal
			primary, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer primary.Close()
			// terminal is closed when it is garbage: a goroutine of bubbletea asks for its size, possibly after the end of the program.
			if err := pty.Setsize(primary, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
				t.Fatal(err)
			}
			modes := func() *unix.Termios {
				m, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			before := modes()
			var out output
			go out.read(primary)
			f := newFake()
			f.lists <- pods()
			o := f.options()
			o.Source, o.In, o.Out, o.Colour = brokenSource{f, end.detail}, terminal, terminal, true
			o.Shell = func(ctx context.Context, _, _ string) *exec.Cmd {
				return exec.CommandContext(ctx, "sh", "-c", end.shell)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, 1)
			go func() { ended <- Run(ctx, o) }()
			out.await(t, "crash")
			if cmp.Equal(before, modes()) {
				t.Error("the terminal is not in raw mode")
			}
			if _, err := primary.WriteString(end.keys); err != nil {
				t.Fatal(err)
			}
			out.await(t, end.shown)
			cancelAfter(end.cause, cancel)
			select {
			case err := <-ended:
				_, crashed := errors.AsType[*crash](err)
				if crashed != end.panics || !crashed && !errors.Is(err, end.want) {
					t.Errorf("error %v, want %v", err, end.want)
				}
			case <-time.After(testTimeout):
				t.Fatal("the program does not end")
			}
			if diff := cmp.Diff(before, modes()); diff != "" {
				t.Errorf("modes of the terminal (-before +after):\n%s", diff)
			}
			if end.panics {
				out.await(t, "\x1b[?1049l", "goroutine ") // the stack
			}
			fmt.Fprint(terminal, "[prompt]")
			text := out.await(t, "[prompt]")
			for _, restored := range []string{"\x1b[?1049l", "\x1b[?25h"} { // the screen of before, the cursor
				if at := strings.LastIndex(text, restored); at < 0 || at < strings.LastIndex(text, "\x1b[?1049h") {
					t.Errorf("no %q at the end: %q", restored, text)
				}
			}
		})
	}
}

// TestTerminalHangs checks that the program ends on a key and on a signal while its terminal takes no output, and that a terminal that
// takes output again shows the newest screen.
func TestTerminalHangs(t *testing.T) {
	for name, end := range map[string]func(primary *os.File, cancel func()) error{
		"Ctrl-C": func(primary *os.File, _ func()) error {
			_, err := primary.WriteString("\x03")
			return err
		},
		"signal": func(_ *os.File, cancel func()) error {
			cancel()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMUX", "") // it would change what the program asks the terminal
			primary, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			// terminal is closed when it is garbage: a goroutine of bubbletea asks for its size, possibly after the end of the program.
			defer primary.Close() // first: it ends a write
			if err := pty.Setsize(primary, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
				t.Fatal(err)
			}
			before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			flow := func(action int) {
				if err := unix.IoctlSetInt(int(terminal.Fd()), unix.TCXONC, action); err != nil {
					t.Fatal(err)
				}
			}
			var out output
			go out.read(primary)
			f := newFake()
			f.lists <- pods()
			o := f.options()
			o.In, o.Out = terminal, terminal
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- Run(ctx, o) }()
			out.await(t, "crash")
			show := func(last string) {
				for i := range 100 {
					l := pods()
					l.Pods[0].Name = fmt.Sprintf("pod-%d", i)
					if i == 99 {
						l.Pods[0].Name = last
					}
					select {
					case f.lists <- l:
					case <-time.After(testTimeout):
						t.Fatal("the program waits for the terminal")
					}
				}
			}
			flow(unix.TCOOFF)
			show("newest-1")
			flow(unix.TCOON)
			out.await(t, "newest-1")
			flow(unix.TCOOFF)
			show("newest-2")
			if err := end(primary, cancel); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			case <-time.After(testTimeout):
				t.Fatal("the program does not end")
			}
			after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
			if diff := cmp.Diff(before, after); diff != "" || err != nil {
				t.Errorf("%v, modes of the terminal (-before +after):\n%s", err, diff)
			}
			flow(unix.TCOON)
		})
	}
}

func cancelAfter(cause error, cancel context.CancelCauseFunc) {
	if cause != nil {
		cancel(cause)
	}
}

// helperVariable makes the test program another one, see [helper].
const helperVariable = "PODSTEAD_TUI_TEST"

// helper is a program in the terminal of a test: podstead tui, or a shell with job control that runs that. It returns an exit code.
func helper(name string) int {
	failed := func(err error) int {
		fmt.Println("[failed]", err)
		return 1
	}
	if name == "tui" {
		f := newFake()
		f.lists <- pods()
		o := f.options()
		o.In, o.Out = os.Stdin, os.Stdout
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGHUP)
		defer stop()
		if err := Run(ctx, o); err != nil {
			return failed(err)
		}
		return 0
	}
	signal.Ignore(unix.SIGTTOU)
	before, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return failed(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"=tui")
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	cmd.SysProcAttr = &unix.SysProcAttr{Foreground: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return failed(err)
	}
	pid := cmd.Process.Pid
	fmt.Printf("[pid %d]", pid)
	for {
		var status unix.WaitStatus
		switch _, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return failed(err)
		case status.Stopped():
			if err := unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp()); err != nil {
				return failed(err)
			}
			now, err := unix.IoctlGetTermios(0, unix.TCGETS)
			if err != nil {
				return failed(err)
			}
			fmt.Printf("[stopped, restored: %v]", *before == *now)
			if err := errors.Join(unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pid), unix.Kill(-pid, unix.SIGCONT)); err != nil {
				return failed(err)
			}
		default:
			return status.ExitStatus()
		}
	}
}

// TestSuspend checks that Ctrl-Z and SIGTSTP restore the terminal and stop the program under a shell with job control, and that it
// continues without one, where the kernel ignores SIGTSTP.
func TestSuspend(t *testing.T) {
	ctrlZ := func(_ int, terminal *os.File) error {
		_, err := terminal.WriteString("\x1a")
		return err
	}
	kill := func(pid int, _ *os.File) error { return unix.Kill(pid, unix.SIGTSTP) }
	for name, test := range map[string]struct {
		helper  string
		suspend func(pid int, terminal *os.File) error
		want    []string
	}{
		"Ctrl-Z":               {"shell", ctrlZ, []string{"[stopped, restored: true]", "crash"}},
		"SIGTSTP":              {"shell", kill, []string{"[stopped, restored: true]", "crash"}},
		"Ctrl-Z without shell": {"tui", ctrlZ, []string{"cannot suspend"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), helperVariable+"="+test.helper, "TERM=xterm", "TMUX=")
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80}) // it has a session of its own
			if err != nil {
				t.Fatal(err)
			}
			// terminal is closed when it is garbage: a goroutine of bubbletea asks for its size, possibly after the end of the program.
			var out output
			go out.read(terminal)
			pid := cmd.Process.Pid
			out.await(t, "crash")
			if test.helper == "shell" {
				found := regexp.MustCompile(`\[pid (\d+)\]`).FindStringSubmatch(out.await(t, "[pid ", "]"))
				if pid, err = strconv.Atoi(found[1]); err != nil {
					t.Fatal(err)
				}
			}
			if err := test.suspend(pid, terminal); err != nil {
				t.Fatal(err)
			}
			out.await(t, test.want...)
			if _, err := terminal.WriteString("q"); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %q", err, out.await(t, ""))
			}
		})
	}
}

// TestCanSuspend checks which processes a shell can continue.
func TestCanSuspend(t *testing.T) {
	type relation struct{ parent, group, session int }
	for name, test := range map[string]struct {
		processes map[int]relation
		want      bool
	}{
		"shell":                   {map[int]relation{9: {8, 9, 8}, 8: {1, 8, 8}}, true},
		"script of a shell":       {map[int]relation{9: {7, 7, 6}, 7: {6, 7, 6}, 6: {1, 6, 6}}, true},
		"session without a shell": {map[int]relation{9: {8, 9, 9}, 8: {1, 8, 8}}, false},
		"script of a session":     {map[int]relation{9: {7, 7, 7}, 7: {6, 7, 7}, 6: {1, 6, 6}}, false},
		"parent in another one":   {map[int]relation{9: {1, 9, 8}, 1: {0, 1, 1}}, false},
		"unknown parent":          {map[int]relation{9: {8, 9, 8}}, false},
	} {
		got := canSuspend(9, func(pid int) (proc.Stat, error) {
			if p, known := test.processes[pid]; known {
				return proc.Stat{Parent: p.parent, Group: p.group, Session: p.session}, nil
			}
			return proc.Stat{}, os.ErrNotExist
		})
		if got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestTerminalLate checks that the screen does not change while the terminal takes nothing, so that what it has not taken stays small, and
// that the program gets a message when the screen can change.
func TestTerminalLate(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	took := make(chan struct{})
	m := newModel(t.Context(), newFake().options(), nil)
	m.handle(pods())
	m.out = &terminal{File: w, taken: func() { close(took) }}
	text := strings.Repeat("x", 1<<20) // more than a pipe takes
	if _, err := m.out.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	before := m.View().Content
	timeout := time.After(testTimeout)
	for tick := time.Tick(time.Millisecond); !m.out.late(); {
		select {
		case <-tick:
		case <-timeout:
			t.Fatal("the terminal is not late")
		}
	}
	m.handle(live.List{})
	if m.View().Content != before {
		t.Error("the screen changes while the terminal is late")
	}
	if m.out.wait() {
		t.Error("the terminal has taken the text")
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != text || !m.out.wait() {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	select {
	case <-took:
	case <-time.After(testTimeout):
		t.Fatal("the program is not told that the terminal has taken the text")
	}
	if m.View().Content == before {
		t.Error("the screen does not change")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(testTimeout); err == nil; _, err = m.out.Write([]byte("y")) {
		if time.Now().After(deadline) {
			t.Fatal("no error of a closed terminal")
		}
	}
}
