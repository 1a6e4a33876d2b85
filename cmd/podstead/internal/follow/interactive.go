package follow

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
)

const (
	// maxRefused is the number of refused attempts to attach to a running container after which the session fails.
	maxRefused = 5
	// drainTimeout bounds the time that a pod, which has terminated, is kept for the rest of its output. The shim disconnects a client that
	// does not read earlier.
	drainTimeout = 10 * time.Second
)

// Attacher is the part of the API that a session uses besides that of a run. [*api.Client] implements it.
type Attacher interface {
	streams
	PodWithUID(ctx context.Context, name, uid string) (api.Pod, error)
	Attach(ctx context.Context, pod string, o api.AttachOptions) (int, error)
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
