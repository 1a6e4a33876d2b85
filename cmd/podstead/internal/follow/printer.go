package follow

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
)

// sessionPrinter prints a run with a session. The session prints the output of its container. A terminal belongs to the container: nothing else is
// printed to it but warnings before it starts, and notices.
type sessionPrinter struct {
	Printer
	session *session
}

// Pods starts the session.
func (p *sessionPrinter) Pods(pods []api.Pod) {
	p.Printer.Pods(pods)
	if len(pods) > 0 { // otherwise it was not created
		p.session.pod = pods[0]
		p.session.begin(pods[0])
	}
}

// Line prints a line of another container.
func (p *sessionPrinter) Line(pod string, l api.Line) {
	if l.Container != p.session.Container && !p.session.TTY {
		p.Printer.Line(pod, l)
	}
}

// Event prints an event.
func (p *sessionPrinter) Event(e api.Event) {
	if !p.session.TTY || e.Level == api.EventWarning && !p.session.begun.Load() {
		p.Printer.Event(e)
	}
}

// Terminated waits for the rest of the container's output before the pod is deleted.
func (p *sessionPrinter) Terminated(final api.Pod) {
	t := time.NewTimer(drainTimeout)
	defer t.Stop()
	select {
	case <-p.session.done:
	case <-t.C:
	}
	p.session.final = &final
	p.Printer.Terminated(final)
}

// Notice prints a message of the run. The session reports lost connections itself.
func (p *sessionPrinter) Notice(message string) {
	if message != wait.Reconnected || !p.session.begun.Load() {
		p.Printer.Notice(message)
	}
}

// Screen is a writer of lines to a terminal. While the terminal is in raw mode, each write starts in a new line, and lines end with a
// carriage return.
type Screen struct {
	io.Writer
	raw atomic.Bool
}

// Write implements [io.Writer].
func (s *Screen) Write(p []byte) (int, error) {
	if !s.raw.Load() {
		return s.Writer.Write(p)
	}
	if _, err := s.Writer.Write(append([]byte("\r\n"), bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
