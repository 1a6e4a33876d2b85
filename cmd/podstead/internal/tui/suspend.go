package tui

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// process is the relation of a process to others: their IDs.
type process struct{ parent, group, session int }

// processOf reads a process, see proc_pid_stat(5).
func processOf(pid int) (p process, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	text := string(stat)
	text = text[strings.LastIndexByte(text, ')')+1:] // a name can have parentheses
	var state string
	_, err = fmt.Sscan(text, &state, &p.parent, &p.group, &p.session)
	return p, err
}

// canSuspend reports whether the group of a process has a parent that can continue it: one in its session. The kernel ignores SIGTSTP in
// other groups, which are orphaned, such as those of ssh -t HOST podstead tui and of a window of tmux with a command.
func canSuspend(pid int, processOf func(int) (process, error)) bool {
	p, err := processOf(pid)
	if err != nil {
		return false
	}
	for parent := p; ; {
		if parent, err = processOf(parent.parent); err != nil || parent.session != p.session {
			return false
		}
		if parent.group != p.group {
			return true
		}
	}
}

// stopped reports SIGTSTP of another process.
type stopped struct{}

// suspension handles SIGTSTP.
type suspension struct {
	signals  chan os.Signal
	possible func() bool
	running  bool // from the request until the program continues
}

func newSuspension() *suspension {
	ignored := signal.Ignored(unix.SIGTSTP)
	s := &suspension{signals: make(chan os.Signal, 1)}
	s.possible = func() bool { return !ignored && canSuspend(os.Getpid(), processOf) }
	return s
}

// watch sends [stopped] until the context ends.
func (s *suspension) watch(ctx context.Context, send func(tea.Msg)) {
	for {
		select {
		case <-s.signals:
			send(stopped{})
		case <-ctx.Done():
			return
		}
	}
}

// catch makes SIGTSTP a message: with its default action, the terminal would not be restored.
func (s *suspension) catch() {
	s.running = false
	signal.Notify(s.signals, unix.SIGTSTP)
}

// suspend stops the program. bubbletea restores the terminal, sends SIGTSTP, and waits for SIGCONT.
func (m *model) suspend() tea.Cmd {
	s := m.suspension
	switch {
	case s.running:
		return nil
	case !s.possible():
		m.fail("cannot suspend: no shell with job control")
		return nil
	}
	s.running = true
	signal.Stop(s.signals) // until tea.ResumeMsg
	return tea.Suspend
}
