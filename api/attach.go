package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Attacher opens sessions with the standard streams of running containers.
type Attacher interface {
	// Attach returns an [*attach.Error] if the request cannot be fulfilled, and [attach.ErrNoServer] if the shim of the pod serves no clients.
	Attach(ctx context.Context, uid string, ref lifecycle.Ref, r attach.Request) (*attach.Session, error)
}

// AttachQuery selects a container and its streams. The zero value selects no stream.
type AttachQuery struct {
	// UID, if set, restricts the request to the pod with this UID.
	UID       string
	Container string // empty: the default container, see [DefaultContainer]
	Stdin     bool
	Stdout    bool
	Stderr    bool
	// TTY requires a container with a terminal.
	TTY bool
	// FromStart adds what the container has written before its first client, as far as it is kept.
	FromStart bool
}

// DefaultContainerAnnotation names the container of a pod that is meant if a command names none, as in kubectl.
const DefaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// DefaultContainer returns the name of the container that a request without a container refers to: that of the annotation
// [DefaultContainerAnnotation], or the first one.
func DefaultContainer(pod *spec.Pod) string {
	if name := pod.Annotations[DefaultContainerAnnotation]; name != "" {
		return name
	}
	if len(pod.Containers) == 0 {
		return ""
	}
	return pod.Containers[0].Name
}

// Attach opens a session with the standard streams of a running container, from now on. Its status is a success if the container exits with
// code 0; [ExitCode] returns another exit code. If the container is not running, the error is an [*Error] with status 409 and the reason
// [ReasonNotRunning].
func (c *Client) Attach(ctx context.Context, pod string, q AttachQuery) (*channel.Conn, error) {
	v := url.Values{}
	if q.UID != "" {
		v.Set("uid", q.UID)
	}
	if q.Container != "" {
		v.Set("container", q.Container)
	}
	for name, set := range map[string]bool{"stdin": q.Stdin, "stdout": q.Stdout, "stderr": q.Stderr, "tty": q.TTY, "fromStart": q.FromStart} {
		if set {
			v.Set(name, "true")
		}
	}
	u := url.URL{Scheme: "http", Host: "podstead", Path: podPath(pod) + "/attach", RawQuery: v.Encode()}
	conn, response, err := channel.Dial(ctx, c.http, u.String(), http.Header{"User-Agent": {c.agent}}, channel.Stdout, channel.Stderr)
	if response != nil && err != nil && response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, readError(response)
	}
	return conn, c.unavailable(ctx, err)
}

// readAttachQuery reads the parameters of an attach request.
func readAttachQuery(v url.Values, pod *spec.Pod) (q AttachQuery, c *spec.Container, err error) {
	for name, to := range map[string]*bool{"stdin": &q.Stdin, "stdout": &q.Stdout, "stderr": &q.Stderr, "tty": &q.TTY, "fromStart": &q.FromStart} {
		if *to, err = flag(v, name); err != nil {
			return q, nil, err
		}
	}
	if !q.Stdin && !q.Stdout && !q.Stderr {
		return q, nil, failure(http.StatusBadRequest, "at least one of stdin, stdout and stderr is required")
	}
	if q.Container = v.Get("container"); q.Container == "" {
		q.Container = DefaultContainer(pod)
	}
	if c = pod.Container(q.Container); c == nil {
		return q, nil, noContainer(pod, q.Container)
	}
	switch {
	case q.Stdin && !c.Stdin:
		e := failure(http.StatusConflict, "container %q of pod %q does not have stdin", c.Name, pod.Name)
		e.Hint = "set stdin = true for the container in the pod file, or attach without stdin"
		return q, nil, e
	case q.TTY && !c.TTY:
		e := failure(http.StatusConflict, "container %q of pod %q does not have a TTY", c.Name, pod.Name)
		e.Hint = "set tty = true for the container in the pod file, or attach without a TTY"
		return q, nil, e
	}
	return q, c, nil
}

// noContainer is the error for a pod without a container of this name.
func noContainer(pod *spec.Pod, name string) *Error {
	var names []string
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers, pod.EphemeralContainers) {
		names = append(names, c.Name)
	}
	e := failure(http.StatusNotFound, "pod %q has no container %q", pod.Name, name)
	e.Hint = "use one of " + strings.Join(names, ", ")
	return e
}

// notRunning returns the error for a container that has no process, nil if it is running. It contains the state of the container.
func notRunning(snapshot *supervisor.Snapshot, name string) error {
	s := &snapshot.Status
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses) {
		if c.Name == name && c.State.Running != nil {
			return nil
		}
		if c.Name == name {
			return notRunningError(snapshot.Pod.Name, name, &c.State)
		}
	}
	return notRunningError(snapshot.Pod.Name, name, &lifecycle.State{})
}

func notRunningError(pod, name string, state *lifecycle.State) *Error {
	text := "not started yet"
	switch {
	case state.Terminated != nil:
		text = fmt.Sprintf("terminated with exit code %d (%s)", state.Terminated.ExitCode, state.Terminated.Reason)
	case state.Waiting != nil && state.Waiting.Reason != "":
		text = fmt.Sprintf("waiting (%s)", state.Waiting.Reason)
		if state.Waiting.Message != "" {
			text += ": " + state.Waiting.Message
		}
	}
	e := failure(http.StatusConflict, "container %q of pod %q is not running: %s", name, pod, text)
	e.Reason, e.Hint = ReasonNotRunning, "podstead logs "+pod+" -c "+name+" shows its output"
	return e
}

// attach connects a client with the standard streams of a running container.
// Parameters: container, stdin, stdout, stderr, tty, fromStart and uid. The request is upgraded to a WebSocket, see package channel.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	session, err := s.openAttach(r)
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	defer session.Close()
	conn, err := channel.Accept(w, r, channel.Stdin)
	if refused, ok := errors.AsType[*channel.RefusedError](err); ok {
		s.reply(w, r, nil, failure(refused.Status, "%s", refused.Message))
	}
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), conn.Close)()
	serveAttach(conn, session)
}

// openAttach opens the session that a request asks for.
func (s *Server) openAttach(r *http.Request) (*attach.Session, error) {
	if s.o.Attacher == nil {
		return nil, failure(http.StatusNotImplemented, "this daemon cannot attach to containers")
	}
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	q, c, err := readAttachQuery(r.URL.Query(), snapshot.Pod)
	if err != nil {
		return nil, err
	}
	if err := notRunning(&snapshot, c.Name); err != nil {
		return nil, err
	}
	session, err := s.o.Attacher.Attach(r.Context(), snapshot.Facts.UID, snapshot.Facts.Containers[c.Name].Newest.Ref, attach.Request{
		Stdin: q.Stdin, Stdout: q.Stdout, Stderr: q.Stderr, FromStart: q.FromStart,
	})
	return session, attachError(err, snapshot.Pod.Name, c.Name)
}

// attachError returns the response for an error of the shim.
func attachError(err error, pod, container string) error {
	e, rejected := errors.AsType[*attach.Error](err)
	switch {
	case err == nil:
		return nil
	case rejected && e.Reason == attach.NotFound:
		return notRunningError(pod, container, &lifecycle.State{Waiting: &lifecycle.Waiting{Reason: "Exited"}})
	case rejected:
		return failure(http.StatusConflict, "attach to container %q of pod %q: %v", container, pod, e)
	case errors.Is(err, attach.ErrNoServer):
		e := failure(http.StatusConflict, "attach to container %q of pod %q: %v", container, pod, attach.ErrNoServer)
		e.Hint = "the pod was started by a version of podstead without attach: restart it with podstead restart " + pod
		return e
	}
	return fmt.Errorf("attach to container %q of pod %q: %w", container, pod, err)
}

// serveAttach copies between a client and a container until one of them has ended.
func serveAttach(conn *channel.Conn, session *attach.Session) {
	var copies sync.WaitGroup
	copies.Go(func() {
		for {
			select {
			case size := <-conn.Sizes():
				_ = session.Resize(attach.Size{Width: size.Width, Height: size.Height}) // copyOutput handles the end of the session
			case <-conn.Done():
				_ = session.Close()
				return
			}
		}
	})
	copies.Go(func() {
		if _, err := io.Copy(session, conn.Reader(channel.Stdin)); err == nil {
			_ = session.CloseStdin() // the same
		}
	})
	if status, err := copyOutput(conn, session); err == nil {
		_ = conn.Finish(status) // the client may be gone
	}
	conn.Close()
	copies.Wait()
}

// copyOutput copies the output to the client, and returns the status at the end of the container or the session. The error means that the
// client is lost.
func copyOutput(conn *channel.Conn, session *attach.Session) (metav1.Status, error) {
	for {
		stream, data, err := session.Next()
		if exit, ok := errors.AsType[*attach.ExitedError](err); ok {
			return exitStatus(int(exit.Code)), nil
		}
		if err != nil {
			return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}, nil
		}
		id := channel.Stdout
		if stream == attach.Stderr {
			id = channel.Stderr
		}
		if _, err := conn.Writer(id).Write(data); err != nil {
			return metav1.Status{}, err
		}
	}
}

// nonZeroExit and exitCause are words of Kubernetes' streaming protocol (k8s.io/apimachinery: pkg/util/remotecommand).
const (
	nonZeroExit = "NonZeroExitCode"
	exitCause   = "ExitCode"
)

// exitStatus returns the status of a session whose process has exited.
func exitStatus(code int) metav1.Status {
	if code == 0 {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Reason: nonZeroExit, Message: fmt.Sprintf("process exited with code %d", code),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: exitCause, Message: strconv.Itoa(code)}}},
	}
}

// ExitCode returns the exit code in the status of a session. It is false if the session ended for another reason.
func ExitCode(status *metav1.Status) (int, bool) {
	switch {
	case status.Status == metav1.StatusSuccess:
		return 0, true
	case status.Reason != nonZeroExit || status.Details == nil:
		return 0, false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == exitCause {
			code, err := strconv.Atoi(cause.Message)
			return code, err == nil
		}
	}
	return 0, false
}
