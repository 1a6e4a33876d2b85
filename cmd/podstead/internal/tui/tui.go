package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

// Options are what the screen shows and does. All but Colour are required.
type Options struct {
	// Source is a [live.Source].
	Source interface {
		Pods(ctx context.Context, zone *time.Location, show func(any) error) error
		Pod(ctx context.Context, name string, zone *time.Location) (*live.Detail, error)
		Logs(ctx context.Context, names []string, tail int, show func([]live.Line) error) error
	}
	// Describe and Manifest return the text of podstead describe and podstead get -o yaml.
	Describe, Manifest func(ctx context.Context, name string) (string, error)
	// Restart, Stop and Start request a change of the pod with this UID.
	Restart, Stop, Start func(ctx context.Context, name, uid string) error
	// Shell returns a command that runs a shell in a container of a pod, in the terminal of this program; an empty name: the default one.
	Shell func(ctx context.Context, pod, container string) *exec.Cmd
	// In and Out are the terminal.
	In, Out *os.File
	Colour  bool
}

// Run shows the screen until the user quits or the context ends. It restores the terminal, also after a panic of what it shows, whose stack
// it then prints. A terminal that takes no output is left after [restoreTime], with the modes of before.
func Run(ctx context.Context, o *Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var program *tea.Program
	m := newModel(ctx, o, func(msg tea.Msg) { program.Send(msg) })
	m.out = &terminal{File: o.Out, taken: func() { m.send(taken{}) }}
	program = tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(m.out), tea.WithoutSignalHandler(),
		tea.WithColorProfile(colorprofile.ANSI)) // all that styles use; the detection would run a program in tmux
	defer context.AfterFunc(ctx, program.Quit)() // a program with a context would not wait for its reader of keys
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTSTP) // with its default action, the terminal would not be restored
	defer signal.Stop(signals)
	go forward(ctx, signals, m.send)
	_, err := program.Run()
	if m.crash != nil {
		fmt.Fprintf(m.out, "%s", m.crash.stack)
	}
	m.out.wait()
	if m.crash != nil {
		return m.crash
	}
	return errors.Join(err, context.Cause(ctx))
}

// crash is a panic.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("internal error: %v", c.value) }

func newCrash(value any) *crash {
	if p, is := value.(*live.Panic); is {
		return &crash{p.Value, p.Stack}
	}
	return &crash{value, debug.Stack()}
}

// do returns a command that ends the program if it panics.
func do(run func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if value := recover(); value != nil {
				msg = newCrash(value)
			}
		}()
		return run()
	}
}
