package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Attacher opens sessions with the standard streams of running containers.
type Attacher interface {
	// Attach returns an [*attach.Error] if the request cannot be fulfilled, a [lifecycle.FailureNotFound] if the container does not exist,
	// and [attach.ErrNoServer] if the monitor serves no clients.
	Attach(ctx context.Context, uid string, ref lifecycle.Ref, r attach.Request) (*attach.Session, error)
}

// attach connects a client with the standard streams of a running container, from now on. The client connects with a WebSocket, see package
// channel. The status at the end of the session has the exit code of the container.
// Parameters: container, stdin, stdout, stderr, tty, width and height of the terminal, fromStart, and uid.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) error {
	opened, q, err := s.openAttach(r)
	if err != nil {
		return err
	}
	defer opened.Close()
	var receive []channel.ID
	if q.request.Stdin {
		receive = append(receive, channel.Stdin)
	}
	if opened.Incomplete {
		w.Header().Set(api.IncompleteHeader, "true")
	}
	return s.session(w, r, receive, func(ctx context.Context, conn *channel.Conn) (int, error) {
		sent := make(chan struct{}) // closed when the input of the client was passed on
		defer context.AfterFunc(ctx, func() { closeAttach(opened, sent) })()
		return serveAttach(conn, opened, q, sent) //nolint:contextcheck // the end of ctx closes the session and the connection
	})
}

// attachQuery is the query of an attach request.
type attachQuery struct {
	request attach.Request
	tty     bool
	size    channel.Size
}

// openAttach opens the session that a request asks for.
func (s *Server) openAttach(r *http.Request) (*attach.Session, *attachQuery, error) {
	q, err := readAttachQuery(r.URL.Query())
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, nil, err
	}
	ref, err := runningContainer(&snapshot, r.URL.Query().Get("container"))
	if err != nil {
		return nil, nil, err
	}
	pod := snapshot.Pod
	if err := q.check(pod, pod.Container(ref.Container)); err != nil {
		return nil, nil, err
	}
	opened, err := s.o.Attacher.Attach(r.Context(), snapshot.Facts.UID, ref, q.request)
	return opened, q, attachError(err, pod.Name, ref.Container)
}

// readAttachQuery reads the parameters of an attach request.
func readAttachQuery(v url.Values) (*attachQuery, error) {
	q := &attachQuery{}
	var err error
	for name, to := range map[string]*bool{
		"stdin": &q.request.Stdin, "stdout": &q.request.Stdout, "stderr": &q.request.Stderr, "tty": &q.tty,
		"fromStart": &q.request.FromStart,
	} {
		if *to, err = flag(v, name); err != nil {
			return nil, err
		}
	}
	if q.size, err = terminalSize(v); err != nil {
		return nil, err
	}
	if !q.request.Stdin && !q.request.Stdout && !q.request.Stderr {
		return nil, failure(http.StatusBadRequest, "at least one of stdin, stdout and stderr must be true")
	}
	return q, nil
}

// check returns an error if a container does not have the streams.
func (q *attachQuery) check(pod *spec.Pod, c *spec.Container) error {
	lacks := func(what, field string) error {
		e := failure(http.StatusConflict, "container %q of pod %q does not have %s", c.Name, pod.Name, what)
		e.Hint = "set " + field + " = true for the container in the pod file, or attach without " + what
		return e
	}
	switch {
	case q.request.Stdin && !c.Stdin:
		return lacks("stdin", "stdin")
	case q.tty && !c.TTY:
		return lacks("a terminal", "tty")
	}
	return nil
}

// attachError returns the response for an error of the runtime. The container may have exited since its state was read.
func attachError(err error, pod, container string) error {
	e, rejected := errors.AsType[*attach.Error](err)
	f, failed := errors.AsType[lifecycle.Failure](err)
	switch {
	case err == nil:
		return nil
	case rejected && e.Reason == attach.NotFound:
		return notRunning(pod, container, e.Error())
	case failed && f.Kind == lifecycle.FailureNotFound:
		return notRunning(pod, container, f.Message)
	case rejected:
		return failure(http.StatusConflict, "attach to container %q of pod %q: %v", container, pod, e)
	case errors.Is(err, attach.ErrNoServer):
		e := failure(http.StatusConflict, "attach to container %q of pod %q: %v", container, pod, attach.ErrNoServer)
		e.Hint = "the pod was started by a version of podstead without attach: delete it and apply it again"
		return e
	}
	return fmt.Errorf("attach to container %q of pod %q: %w", container, pod, err)
}

// serveAttach copies between a client and a container until the container exits or the session is closed, and returns the exit code.
func serveAttach(conn *channel.Conn, opened *attach.Session, q *attachQuery, sent chan<- struct{}) (int, error) {
	if q.size != (channel.Size{}) {
		// A program draws its screen again if the size has changed. Input is sent after this, so that what the user types first is
		// executed with the right size.
		resize(opened, channel.Size{Width: q.size.Width, Height: q.size.Height + 1})
		resize(opened, q.size)
	}
	go func() {
		for {
			select {
			case size := <-conn.Sizes():
				resize(opened, size)
			case <-conn.Done():
				return
			}
		}
	}()
	if !q.request.Stdin {
		close(sent)
	} else {
		go func() {
			defer close(sent)
			if _, err := io.Copy(opened, conn.Reader(channel.Stdin)); err == nil {
				_ = opened.CloseStdin() // Next returns the error of a closed session
			}
		}()
	}
	for {
		stream, data, err := opened.Next()
		exit, exited := errors.AsType[*attach.ExitedError](err)
		cut, disconnected := errors.AsType[*attach.DisconnectedError](err)
		switch {
		case exited:
			return int(exit.Code), nil
		case disconnected:
			return 0, &api.Error{Status: http.StatusConflict, Reason: api.ReasonDisconnected, Message: cut.Reason, Hint: "attach again"}
		case err != nil:
			return 0, err
		}
		id := channel.Stdout
		if stream == attach.Stderr {
			id = channel.Stderr
		}
		if _, err := conn.Writer(id).Write(data); err != nil {
			return 0, err
		}
	}
}

// inputTimeout is how long the input of a client that has disconnected is passed on: what a user types before the detach keys.
const inputTimeout = time.Second

// closeAttach closes a session whose client has disconnected or whose daemon stops.
func closeAttach(opened *attach.Session, sent <-chan struct{}) {
	timeout := time.NewTimer(inputTimeout)
	defer timeout.Stop()
	select {
	case <-sent:
	case <-timeout.C:
	}
	_ = opened.Close()
}

func resize(opened *attach.Session, size channel.Size) {
	_ = opened.Resize(attach.Size{Width: size.Width, Height: size.Height}) // Next returns the error of a closed session
}
