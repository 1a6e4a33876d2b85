package tui

import (
	"context"
	"io"
	"os"
	"os/signal"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// canSuspend reports whether the group of a process has a parent that can continue it: one in its session. The kernel ignores SIGTSTP in
// other groups, which are orphaned, such as those of ssh -t HOST podstead tui and of a window of tmux with a command.
func canSuspend(pid int, statOf func(int) (proc.Stat, error)) bool {
	p, err := statOf(pid)
	if err != nil {
		return false
	}
	for parent := p; ; {
		if parent, err = statOf(parent.Parent); err != nil || parent.Session != p.Session {
			return false
		}
		if parent.Group != p.Group {
			return true
		}
	}
}

// stopped reports SIGTSTP of another process.
type stopped struct{}

// forward sends [stopped] for each signal until the context ends.
func forward(ctx context.Context, signals <-chan os.Signal, send func(tea.Msg)) {
	for {
		select {
		case <-signals:
			send(stopped{})
		case <-ctx.Done():
			return
		}
	}
}

// stop is a "command" that has the terminal while the program is stopped.
type stop struct{ out *terminal }

func (stop) SetStdin(io.Reader)  {}
func (stop) SetStdout(io.Writer) {}
func (stop) SetStderr(io.Writer) {}

// Run stops the process group, as a shell expects it, until SIGCONT. SIGTSTP has no effect: after [signal.Notify], Go ignores it.
func (s stop) Run() error {
	s.out.wait()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	if err := unix.Kill(0, unix.SIGSTOP); err != nil {
		return err
	}
	<-continued // another thread may receive the signal, after Kill returns
	return nil
}

// suspend stops the program with the terminal as before.
func (m *model) suspend() tea.Cmd {
	if !canSuspend(os.Getpid(), proc.StatOf) {
		m.fail("cannot suspend: no shell with job control")
		return nil
	}
	return tea.Exec(stop{m.out}, func(err error) tea.Msg {
		if err != nil {
			return done{"suspend: " + err.Error(), true}
		}
		return nil
	})
}
