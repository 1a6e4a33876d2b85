package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

const testTimeout = 2 * time.Minute

// brokenSource panics when details are requested.
type brokenSource struct{ *fakeSource }

func (brokenSource) Pod(context.Context, string, *time.Location) (*live.Detail, error) {
	panic("broken")
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

// await waits for a text, and returns all output.
func (o *output) await(t *testing.T, want string) (text string) {
	t.Helper()
	timeout := time.After(testTimeout)
	for tick := time.Tick(10 * time.Millisecond); ; {
		o.mu.Lock()
		text = o.text
		o.mu.Unlock()
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-tick:
		case <-timeout:
			t.Fatalf("the terminal has no %q: %q", want, text)
		}
	}
}

// TestTerminalRestored checks that the terminal is as before after all ways to end the program.
func TestTerminalRestored(t *testing.T) {
	requested := errors.New("requested")
	for name, end := range map[string]struct {
		keys   string
		cause  error // of the end of the context
		want   error
		panics bool
	}{
		"quit":         {keys: "q"},
		"Ctrl-C":       {keys: "\x03"},
		"signal":       {cause: requested, want: requested},
		"panic":        {keys: "\r", panics: true},
		"within shell": {keys: "sy", cause: requested, want: requested},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMUX", "") // it would change what the program asks the terminal
			primary, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer primary.Close()
			defer terminal.Close()
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
			o.Source, o.In, o.Out, o.Colour = brokenSource{f}, terminal, terminal, true
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
			if end.keys != "" && end.cause != nil {
				out.await(t, "has exited")
			}
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

func cancelAfter(cause error, cancel context.CancelCauseFunc) {
	if cause != nil {
		cancel(cause)
	}
}
