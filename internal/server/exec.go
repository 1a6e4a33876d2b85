package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Sessions runs commands in containers.
type Sessions interface {
	// Session runs a command until it exits or ctx ends, which kills it and all processes that it has started. The error is a
	// [*session.StartError] if the command cannot be executed, and a [lifecycle.FailureNotFound] if the container is not running.
	Session(ctx context.Context, uid string, ref lifecycle.Ref, c session.Command) (code int, err error)
}

// defaultContainerAnnotation names the container of commands that name none, as in kubectl.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// exec runs a command in a container, for a client that connects with a WebSocket, see package channel.
// Parameters: command (repeatable: the program and its arguments), container, stdin, stdout, stderr, tty, width and height of the terminal,
// and uid. Errors before the command starts are responses; later ones are in the status at the end of the session.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) error {
	command, err := readExecQuery(r.URL.Query())
	if err != nil {
		return err
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return err
	}
	ref, err := runningContainer(&snapshot, r.URL.Query().Get("container"))
	if err != nil {
		return err
	}
	var receive []channel.ID
	if command.stdin {
		receive = append(receive, channel.Stdin)
	}
	return s.session(w, r, receive, func(ctx context.Context, c *channel.Conn) (int, error) {
		code, err := s.o.Sessions.Session(ctx, snapshot.Facts.UID, ref, command.connect(c))
		if f, ok := errors.AsType[lifecycle.Failure](err); ok && f.Kind == lifecycle.FailureNotFound { // it has exited since
			err = notRunning(snapshot.Pod.Name, ref.Container, f.Message)
		}
		return code, err
	})
}

// session upgrades a request and calls run. Its context ends when the client is lost or the daemon stops. The client gets the result of
// run, unless the daemon stops.
func (s *Server) session(w http.ResponseWriter, r *http.Request, receive []channel.ID,
	run func(context.Context, *channel.Conn) (int, error),
) error {
	if !s.sessions.TryAcquire(1) {
		return &api.Error{
			Status: http.StatusTooManyRequests, Reason: api.ReasonTooManySessions,
			Message: fmt.Sprintf("too many sessions at once: at most %d", api.MaxSessions), Hint: "end another session, then try again",
		}
	}
	defer s.sessions.Release(1)
	conn, err := channel.Accept(w, r, receive...)
	if refused, ok := errors.AsType[*channel.RefusedError](err); ok {
		return failure(refused.Status, "%s", refused.Message)
	}
	if err != nil {
		return nil // there is no connection to report it on
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		code, err := run(ctx, conn)
		done <- result{code, err}
	}()
	finish := func(status channel.Status) { //nolint:contextcheck // a connection has its own timeouts
		_ = conn.Finish(status) // a client that is lost gets no status
	}
	select {
	case ended := <-done:
		status := sessionStatusOf(ended.code, ended.err)
		if r.Context().Err() != nil {
			status = stoppedStatus()
		}
		finish(status)
	case <-conn.Done():
		cancel()
		<-done
	case <-r.Context().Done(): // output that the client does not receive must not delay the end
		cancel()
		finish(stoppedStatus())
		<-done
	}
	return nil
}

// execQuery is the query of an exec request.
type execQuery struct {
	stdin, stdout, stderr bool
	command               session.Command
}

// connect returns the command with the streams of a client.
func (q *execQuery) connect(c *channel.Conn) session.Command {
	command := q.command
	if q.stdin {
		command.Stdin = c.Reader(channel.Stdin)
	}
	if q.stdout {
		command.Stdout = c.Writer(channel.Stdout)
	}
	if q.stderr {
		command.Stderr = c.Writer(channel.Stderr)
	}
	if command.TTY {
		command.Resize = c.Sizes()
	}
	return command
}

func readExecQuery(q url.Values) (*execQuery, error) {
	e := &execQuery{command: session.Command{Args: q["command"]}}
	var err error
	for name, value := range map[string]*bool{"stdin": &e.stdin, "stdout": &e.stdout, "stderr": &e.stderr, "tty": &e.command.TTY} {
		if *value, err = flag(q, name); err != nil {
			return nil, err
		}
	}
	if e.command.Size, err = terminalSize(q); err != nil {
		return nil, err
	}
	switch {
	case len(e.command.Args) == 0 || e.command.Args[0] == "":
		return nil, invalidField("command", "command: required value")
	case !e.stdin && !e.stdout && !e.stderr:
		return nil, failure(http.StatusBadRequest, "at least one of stdin, stdout and stderr must be true")
	case e.command.TTY && e.stderr:
		return nil, invalidField("tty", "tty and stderr cannot both be true: a terminal has one output")
	}
	return e, nil
}

// terminalSize reads the parameters width and height.
func terminalSize(q url.Values) (size channel.Size, err error) {
	for name, value := range map[string]*uint16{"width": &size.Width, "height": &size.Height} {
		if !q.Has(name) {
			continue
		}
		n, err := strconv.ParseUint(q.Get(name), 10, 16)
		if err != nil {
			return size, invalidField(name, "%s=%q: must be a number up to 65535", name, q.Get(name))
		}
		*value = uint16(n)
	}
	return size, nil
}

// containerName checks the name of a container of a pod; if it is empty, it returns that of the default container.
func containerName(s *supervisor.Snapshot, name string) (string, error) {
	var names []string
	for _, list := range [...][]spec.Container{s.Pod.Containers, s.Pod.InitContainers, s.Pod.EphemeralContainers} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	if name == "" {
		name = names[0]
		if annotated := s.Pod.Annotations[defaultContainerAnnotation]; slices.Contains(names, annotated) {
			name = annotated
		}
	}
	if !slices.Contains(names, name) {
		return "", noContainer(s.Pod, name, names)
	}
	return name, nil
}

func noContainer(pod *spec.Pod, name string, names []string) error {
	e := failure(http.StatusNotFound, "pod %q has no container %q", pod.Name, name)
	e.Hint = "use one of " + strings.Join(names, ", ")
	return e
}

// runningContainer returns the run of a container of a pod; with an empty name, of its default container.
func runningContainer(s *supervisor.Snapshot, name string) (lifecycle.Ref, error) {
	name, err := containerName(s, name)
	if err != nil {
		return lifecycle.Ref{}, err
	}
	newest := &s.Facts.Container(name).Newest
	if newest.Started.IsZero() || !newest.Exited.IsZero() {
		return lifecycle.Ref{}, notRunning(s.Pod.Name, name, containerState(s, name))
	}
	return newest.Ref, nil
}

func notRunning(pod, container, why string) *api.Error {
	return &api.Error{
		Status: http.StatusConflict, Reason: api.ReasonNotRunning,
		Message: fmt.Sprintf("container %q of pod %q is not running: %s", container, pod, why),
		Hint:    "run podstead why " + pod,
	}
}

// containerState describes the state of a container that is not running.
func containerState(s *supervisor.Snapshot, name string) string {
	for _, c := range s.Status.Every() {
		switch state := c.State; {
		case c.Name != name:
		case state.Terminated != nil:
			return fmt.Sprintf("%s (exit code %d)", state.Terminated.Reason, state.Terminated.ExitCode)
		case state.Waiting != nil:
			return string(state.Waiting.Reason)
		}
	}
	return "not started"
}

// sessionStatusOf returns the status of a finished session.
func sessionStatusOf(code int, err error) channel.Status {
	if start, failed := errors.AsType[*session.StartError](err); failed {
		return api.SessionStatus(0, &api.CommandError{Code: start.Code, Message: start.Message})
	}
	if err != nil {
		return api.SessionStatus(0, asError(err))
	}
	return api.SessionStatus(code, nil)
}

// stoppedStatus is the status of a session that ends because the daemon stops.
func stoppedStatus() channel.Status {
	return sessionStatusOf(0, &api.Error{
		Status: http.StatusServiceUnavailable, Reason: api.ReasonDaemonStopped, Message: "the daemon stopped, the session was ended",
	})
}
