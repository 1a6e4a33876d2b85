package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
)

const (
	// maxRefused is the number of refused attempts to attach to a running container after which the session fails.
	maxRefused = 5
	// drainTimeout bounds the time that a pod, which has terminated, is kept for the rest of its output. The monitor disconnects a client
	// that does not read earlier.
	drainTimeout = 10 * time.Second
)

// Attacher is the part of the API that a session uses besides that of a run. [*api.Client] implements it.
type Attacher interface {
	streams
	PodWithUID(ctx context.Context, name, uid string) (api.Pod, error)
	Attach(ctx context.Context, pod string, o client.AttachOptions) (int, error)
}

// SessionOptions are the options of a session.
type SessionOptions struct {
	Daemon    Attacher
	Container string
	In        io.Reader
	Out, Err  io.Writer // of the container
	Screen    *Screen   // what the printer of the run writes to
	TTY       bool      // the container has a terminal, and In is one
	// DetachKeys end the session of a terminal.
	DetachKeys []byte
}

// Result is the result of a session.
type Result struct {
	Pod     string // empty: none was created
	Started bool   // the container has exited, with Code
	Code    int
	// InputLost reports that the connection was lost while the container could read input. How much it has read is unknown.
	InputLost bool
}

// RunAttached runs a pod until its container exits. The error is that of [Run], unless it reports how the pod terminated: that is the
// result. The printer of the run gets what [Printer] says.
func RunAttached(ctx context.Context, o SessionOptions, run Options, file api.CreateRequest) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	s := &session{SessionOptions: o, stop: stop, done: make(chan struct{})}
	s.begin = func(p api.Pod) { s.ending.Go(func() { s.run(ctx, p) }) }
	s.notice = run.Printer.Notice
	run.Printer = &sessionPrinter{Printer: run.Printer, session: s}
	run.Done = stop
	if progress := run.Progress; progress != nil {
		run.Progress = func(p *api.Pod) {
			if p == nil || !s.begun.Load() {
				progress(p)
			}
		}
	}
	err := Run(ctx, run, []api.CreateRequest{file})
	cancel()
	s.ending.Wait()
	return s.end(err)
}

// session is a run with its session.
type session struct {
	SessionOptions
	stop   chan struct{} // closed to stop the pod
	notice func(message string)
	begin  func(p api.Pod) // starts run
	ending sync.WaitGroup
	done   chan struct{} // closed when the session is finished

	// begun reports that the container has started: a terminal belongs to it from then on.
	begun atomic.Bool
	// wrote reports that the container has written to the session.
	wrote atomic.Bool

	pod    api.Pod
	final  *api.Pod // the state in which the pod has terminated; nil: unknown
	result Result
	err    error
}

// end returns the result after the run has returned an error.
func (s *session) end(err error) (Result, error) {
	if s.result.Pod = s.pod.Metadata.Name; s.final != nil && !s.result.Started {
		if state := s.status(s.final); hasRun(state) && state.Terminated != nil {
			s.result.Started, s.result.Code = true, state.Terminated.ExitCode
		}
	}
	terminated := isOnly(err, ErrFailed) || isOnly(err, ErrStopped)
	switch {
	case s.err != nil:
		return s.result, s.err
	case s.result.Started && terminated:
		return s.result, nil
	}
	return s.result, err
}

// isOnly reports whether an error wraps target, and does not join another error.
func isOnly(err, target error) bool {
	for {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			return errors.Is(err, target)
		}
		list := joined.Unwrap()
		if len(list) != 1 {
			return false
		}
		err = list[0]
	}
}

// run attaches to the container when it runs. After that it requests the stop of the pod, unless the pod terminates by itself.
func (s *session) run(ctx context.Context, p api.Pod) {
	err := s.serve(ctx)
	detached := errors.Is(err, connect.ErrDetached)
	switch {
	case detached:
		s.notice("detached, stopping the pod")
	case err != nil && ctx.Err() == nil:
		s.err = err
	}
	close(s.done)
	if err != nil || len(p.Spec.Containers) > 1 {
		close(s.stop)
	}
}

// serve waits for the container, and connects it with the streams until it exits.
func (s *session) serve(ctx context.Context) error {
	state, err := s.await(ctx)
	if err != nil || !hasRun(state) {
		return err // without an error, it never runs
	}
	s.begun.Store(true)
	if state.Terminated != nil {
		return s.printLog(ctx)
	}
	o := connect.TerminalOptions{In: s.In, Raw: s.TTY, DetachKeys: s.DetachKeys, KeepOnSignal: true}
	return connect.Terminal(ctx, o, func(ctx context.Context, t connect.Session) error {
		s.Screen.raw.Store(s.TTY)
		defer s.Screen.raw.Store(false)
		return s.attach(ctx, t)
	})
}

// retry repeats a call until the daemon responds.
func retry(ctx context.Context, call func() error) error { return wait.Retry(ctx, byRun, call) }

// byRun connects to the daemon: the run does it at the same time, and starts the daemon.
func byRun(context.Context) error { return nil }

// status returns the state of the container.
func (s *session) status(p *api.Pod) api.ContainerState {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == s.Container {
			return c.State
		}
	}
	return api.ContainerState{}
}

// hasRun reports whether a container runs or has run. One that never ran can be terminated too.
func hasRun(s api.ContainerState) bool {
	return s.Running != nil || s.Terminated != nil && !s.Terminated.StartedAt.IsZero()
}

// await waits until the container has started, and returns its state, also if it can never run.
func (s *session) await(ctx context.Context) (state api.ContainerState, err error) {
	err = retry(ctx, func() error {
		found := false
		for c, err := range s.Daemon.Watch(ctx) {
			switch {
			case err != nil:
				return err
			case c.Type == api.Listed && !found:
				return nil // deleted by another command
			case c.Type == api.Listed || c.Object.Metadata.UID != s.pod.Metadata.UID:
				continue
			}
			found = true
			state = s.status(&c.Object)
			phase := c.Object.Status.Phase
			if state.Running != nil || state.Terminated != nil || c.Type == api.Deleted || phase == api.PhaseSucceeded ||
				phase == api.PhaseFailed {
				return nil
			}
		}
		return context.Cause(ctx)
	})
	return state, err
}

// attach attaches to the container until it exits, again each time the connection is lost.
func (s *session) attach(ctx context.Context, t connect.Session) error {
	in, sizes := newInput(t.In), newSizes(t)
	for refused := 0; ; {
		err := s.attachOnce(ctx, in, sizes)
		e, rejected := errors.AsType[*api.Error](err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, api.ErrUnavailable):
			s.lost(in, fmt.Sprintf("connection to the daemon lost, container %q keeps running; attaching again", s.Container))
		case rejected && e.Reason == api.ReasonDisconnected:
			s.lost(in, fmt.Sprintf("container %q: %s; attaching again, a part of its output is missing", s.Container, e.Message))
		case rejected && (e.Reason == api.ReasonNotRunning || !s.isRunning(ctx)):
			return s.printRest(ctx)
		case refused < maxRefused: // the monitor may know of an exit before the state changes
			refused++
		default:
			return err
		}
		if err := wait.Reconnect(ctx, byRun); err != nil {
			return err
		}
	}
}

// lost reports a connection that was lost. A container without a terminal has read EOF then.
func (s *session) lost(in *input, message string) {
	if !s.TTY && in.used() && !in.ended() {
		s.result.InputLost = true
	}
	s.notice(message)
}

// isRunning reports whether the container runs. If that is unknown, attaching again shows it.
func (s *session) isRunning(ctx context.Context) bool {
	p, err := s.Daemon.PodWithUID(ctx, s.pod.Metadata.Name, s.pod.Metadata.UID)
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
		return false
	}
	return err != nil || s.status(&p).Running != nil
}

// printRest prints the output of a container that exited before a client was attached.
func (s *session) printRest(ctx context.Context) error {
	if !s.wrote.Load() {
		return s.printLog(ctx)
	}
	s.notice(fmt.Sprintf("container %q exited while it was not attached, the end of its output is missing", s.Container))
	return nil
}

// attachOnce attaches to the container until it exits or the connection is lost.
func (s *session) attachOnce(ctx context.Context, in *input, sizes *sizes) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := client.AttachOptions{UID: s.pod.Metadata.UID, Container: s.Container, FromStart: true}
	o.Stdout, o.Stderr, o.TTY = &notingWriter{s.Out, s}, &notingWriter{s.Err, s}, s.TTY
	if s.TTY || !in.used() { // a container without a terminal has read EOF after its first client
		o.Stdin = in.reader(ctx)
	}
	o.Size, o.Resize = sizes.follow(ctx)
	o.Incomplete = func() { s.notice(Incomplete(s.pod.Metadata.Name, s.Container)) }
	code, err := s.Daemon.Attach(ctx, s.pod.Metadata.Name, o)
	if err == nil {
		s.result.Started, s.result.Code = true, code
	}
	return err
}

// Incomplete is the notice for a session that does not have all output from the start of its container.
func Incomplete(pod, container string) string {
	return fmt.Sprintf("container %q wrote more than 64 KiB before this command attached, the first part is not shown: see all output "+
		"with podstead logs %s -c %s",
		container, pod, container)
}

// notingWriter notes that the container has written.
type notingWriter struct {
	io.Writer
	s *session
}

// Write implements [io.Writer].
func (w *notingWriter) Write(p []byte) (int, error) {
	w.s.wrote.Store(true)
	return w.Writer.Write(p)
}

// printLog prints the log of a container that has exited before a client was attached.
func (s *session) printLog(ctx context.Context) error {
	q := client.OutputQuery{
		UID: s.pod.Metadata.UID, Containers: []string{s.Container}, Runs: api.NewestRun, Follow: true, From: api.Positions{},
	}
	err := retry(ctx, func() error {
		for l, err := range s.Daemon.Output(ctx, s.pod.Metadata.Name, q) {
			if err != nil {
				return err
			}
			q.From.Advance(l)
			if err := WriteLine(s.Out, s.Err, &l); err != nil {
				return err
			}
		}
		return nil
	})
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
		return nil // the pod was deleted
	}
	return err
}

// sessionPrinter prints a run with a session. The session prints the output of its container. A terminal belongs to the container: nothing
// else is printed to it but warnings before it starts, and notices.
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
