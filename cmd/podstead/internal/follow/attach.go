package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
)

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
			if state.Running != nil || state.Terminated != nil || c.Type == api.Deleted || phase == api.PhaseSucceeded || phase == api.PhaseFailed {
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
		case refused < maxRefused: // the shim of a container that has just exited may have exited before the state changes
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
	o := api.AttachOptions{UID: s.pod.Metadata.UID, Container: s.Container, FromStart: true}
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
	return fmt.Sprintf("container %q wrote more than 64 KiB before this command attached, the first part is not shown: see all output with podstead logs %s -c %s",
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
	q := api.OutputQuery{
		UID: s.pod.Metadata.UID, Containers: []string{s.Container}, Runs: api.NewestRun, Follow: true, From: api.Positions{},
	}
	err := retry(ctx, func() error {
		for l, err := range s.Daemon.Output(ctx, s.pod.Metadata.Name, q) {
			if err != nil {
				return err
			}
			q.From.Advance(l)
			out := s.Out
			if l.Stream == "stderr" {
				out = s.Err
			}
			text := []byte(l.Line)
			if l.Raw != nil {
				text = l.Raw
			}
			if _, err := out.Write(append(text, '\n')); err != nil {
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
