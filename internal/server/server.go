package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
)

const (
	// readTimeout bounds reading the header of a request, and then its body.
	readTimeout = 10 * time.Second
	// historyLimit bounds reading the events of a pod from disk.
	historyLimit = 5 * time.Second
	// maxBody is the maximum size of a request. It is larger than a pod file of maximum size as a JSON string with every character escaped.
	maxBody = 8 << 20
	// maxBodies is the maximum size of the bodies of all requests in progress. Further requests with a body wait.
	maxBodies = 2 * maxBody
	// maxHeader is the maximum size of the header of a request.
	maxHeader = 64 << 10
	// idleTimeout is how long a connection without a request is kept.
	idleTimeout = 2 * time.Minute
)

// writeTimeout bounds writing a response, or the next lines of a stream. A slower client is disconnected. Only tests change it.
var writeTimeout = 30 * time.Second

// agentPattern is the pattern of agents that are reported as requesters.
var agentPattern = lazyregexp.New(`^podstead( [a-z]{1,16}){0,2}$`)

// Options are the options of a [Server]. Supervisor and StopDaemon are required.
type Options struct {
	Supervisor *supervisor.Supervisor
	// Restarter starts and restarts pods; nil: the Supervisor.
	Restarter Restarter
	// Files is the pods directory; nil: there is none.
	Files PodFiles
	// Schedules are the schedules of the pods directory; nil: there are none.
	Schedules Schedules
	// Attacher attaches clients to containers; nil: not possible.
	Attacher Attacher
	// VolumeFiles reads and writes persistent volumes; nil: not possible.
	VolumeFiles VolumeFiles
	// ContainerFiles reads and writes files of containers; nil: not possible.
	ContainerFiles ContainerFiles
	// Ports connects to ports of pods; nil: not possible.
	Ports PodPorts
	// LogDir is the directory of container logs: <LogDir>/<pod>_<uid>/<container>/<restart count>.log.
	LogDir string
	// MemoryLogDir is that of containers whose log is in memory; empty: there are none.
	MemoryLogDir string
	// UnitLogDriver is the log driver of pods that systemd units create, unless an annotation sets another; empty: that of other pods.
	UnitLogDriver spec.LogDriver
	// Secrets are the secrets whose values are redacted in explanations; nil: none.
	Secrets SecretSource
	// Stats measures what pods use; nil: nothing is measured.
	Stats   StatsSource
	Version api.Version
	// Sessions runs commands in containers for clients; nil: requests for sessions fail.
	Sessions Sessions
	// Socket is the path of the socket, for messages to clients of the read-only one.
	Socket string
	// Probes returns the newest answers of the probes of a pod. It must not block. nil: explanations have none.
	Probes func(uid string) []api.ContainerProbeAnswer
	// HostIPs returns the addresses by which other hosts reach this host, the preferred one first; nil: pods show none.
	HostIPs func() []api.PodIP
	// StopDaemon is called with the requester when a client stops the daemon, and whether all pods stop first. It must not block, and may
	// be called more than once.
	StopDaemon func(by string, shutdown bool)
	// Images manages the images of the host; nil: the endpoints for images fail with status 501.
	Images Images
	// Metrics serves the metrics in the format of Prometheus; nil: its endpoint fails with status 501.
	Metrics http.Handler
	// System measures and frees what is on the disk; nil: its endpoints fail with status 501.
	System System
	Log    *slog.Logger // nil: discarded
}

// Restarter starts and restarts pods. [*supervisor.Supervisor] implements it.
type Restarter interface {
	Start(ctx context.Context, name, uid, by string) error
	Restart(ctx context.Context, name, uid, container, by string) error
}

// Server serves the API of a supervisor. It is safe for concurrent use.
type Server struct {
	o           Options
	http        *http.Server
	bodies      *semaphore.Weighted // bytes, of the requests in progress
	secretReads *semaphore.Weighted // secrets that are read for explanations
	readerReads *semaphore.Weighted // the same for the read-only socket
	redactors   redactors
	sessions    *semaphore.Weighted // connections with streams, at most [api.MaxSessions]
	forwards    *semaphore.Weighted // connections to ports of pods
	cancel      context.CancelFunc  // ends all streams

	conns connections

	mu       sync.Mutex
	requests int           // in progress
	changed  chan struct{} // closed when a request starts or completes
}

// version returns the version of the daemon with the admission policy that is in effect.
func (s *Server) version() api.Version {
	v := s.o.Version
	if v.Policy != nil {
		policy := s.o.Supervisor.Policy()
		v.Policy = PolicyOf(&policy)
	}
	return v
}

// New returns a server. It serves no requests until [Server.Serve] is called.
func New(ctx context.Context, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HostIPs == nil {
		o.HostIPs = func() []api.PodIP { return nil }
	}
	if o.Restarter == nil {
		o.Restarter = o.Supervisor
	}
	s := &Server{
		o: o, bodies: semaphore.NewWeighted(maxBodies), secretReads: semaphore.NewWeighted(maxSecretReads),
		readerReads: semaphore.NewWeighted(maxReaderReads), sessions: semaphore.NewWeighted(api.MaxSessions),
		forwards: semaphore.NewWeighted(maxForwards), changed: make(chan struct{}),
		conns: connections{byUser: map[uint32]int{}},
	}
	s.redactors = redactors{read: s.secretsOf, list: map[redactorKey]*podRedactor{}}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.http = &http.Server{
		ConnState:         s.conns.track,
		Handler:           s.admitted(s.count(s.newMux())),
		ReadHeaderTimeout: readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s
}

// Serve serves requests until [Server.Close], and closes the listener.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&limitedListener{Listener: l, of: &s.conns})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ServeReadOnly serves requests that change nothing, see [Endpoint], until [Server.Close], and closes the listener. It shows no values of
// environment variables. It does not keep an on-demand daemon running: its requests do not count for [Server.Busy].
func (s *Server) ServeReadOnly(l net.Listener) error {
	err := s.http.Serve(&limitedListener{Listener: l, of: &s.conns, readOnly: true})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close closes the listeners, interrupts all streams and sessions, and waits until requests in progress complete or ctx ends.
func (s *Server) Close(ctx context.Context) error {
	s.cancel()
	s.conns.closeIdle(ctx)
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close()
	}
	for { // Shutdown does not wait for the connections of sessions
		busy, changed := s.Busy()
		if !busy {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

// Busy reports whether a request is in progress, other than those of the read-only socket. The channel is closed when the next request
// starts or completes.
func (s *Server) Busy() (busy bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests > 0, s.changed
}

// count counts the requests in progress.
func (s *Server) count(next http.Handler) http.Handler {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests += n
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isReadOnly(r) { // its users must not keep the daemon running
			add(1)
			defer add(-1)
		}
		next.ServeHTTP(w, r)
	})
}

// handle returns the handler of a call that is not a stream.
func (s *Server) handle(call func(*http.Request) (any, error)) http.HandlerFunc {
	return s.handleWithin(api.CallTimeout, call)
}

func (s *Server) handleWithin(limit time.Duration, call func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		control := http.NewResponseController(w)
		if size := bodySize(r); size > 0 { // a request without a body does not wait for those that have one
			if err := s.bodies.Acquire(ctx, size); err != nil {
				s.reply(w, r, nil, failure(http.StatusTooManyRequests, "too many large requests at once"))
				return
			}
			defer s.bodies.Release(size)
		}
		body, err := readBody(control, http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			s.reply(w, r, nil, failure(http.StatusBadRequest, "read request: %v", err))
			return
		}
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(bytes.NewReader(body))
		v, err := call(r)
		s.reply(w, r, v, err)
	}
}

// bodySize returns the number of bytes that the body of a request can have. The server reads no more than that.
func bodySize(r *http.Request) int64 {
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		return maxBody
	}
	return r.ContentLength
}

// boundBody bounds reading the body of a request that may be rejected before: net/http reads the rest of it before it sends the response.
func boundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	}
}

// readBody reads the body of a request. Afterwards it clears the read deadline: net/http notices a closed connection by a pending read.
// After an error the deadline stays: net/http reads the rest of the body before it sends the response.
func readBody(control *http.ResponseController, r io.Reader) ([]byte, error) {
	_ = control.SetReadDeadline(time.Now().Add(readTimeout))
	body, err := io.ReadAll(r)
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
	}
	return body, err
}

// reply writes the response: the error if it is not nil, otherwise the value.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, v any, err error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		e := asError(err).WithReason()
		if e.Reason == api.ReasonUnresponsive {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(e.Status)
		v = e
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		s.o.Log.LogAttrs(r.Context(), slog.LevelDebug, "write response", slog.Any("error", err))
	}
}

// asError returns the response for an error.
func asError(err error) *api.Error {
	var taken *supervisor.NameTakenError
	var rejected *supervisor.RefusedError
	var used *supervisor.VolumeInUseError
	var container *supervisor.ContainerTakenError
	var held *supervisor.NotSupervisedError
	var condition *supervisor.ConditionUnknownError
	var impossible *supervisor.NotPossibleError
	var conflict *podfiles.ConflictError
	var noContainer *supervisor.ContainerNotFoundError
	var noRollout *podfiles.NoRolloutError
	e, ok := errors.AsType[*api.Error](err)
	invalid, isInvalid := errors.AsType[spec.Problems](err)
	switch {
	case ok:
		if _, several := err.(interface{ Unwrap() []error }); several {
			joined := *e
			joined.Message = strings.ReplaceAll(err.Error(), "\n", "; ")
			return &joined
		}
		return e
	case isInvalid:
		return &api.Error{Status: http.StatusBadRequest, Message: "the pod file is invalid", Problems: problems(invalid)}
	case errors.As(err, &rejected):
		return rejection(rejected)
	case errors.As(err, &held):
		e := failure(http.StatusConflict, "%v", err)
		e.Hint = "delete the pod with podstead delete " + held.Pod + ", and run it again"
		switch held.Reason {
		case lifecycle.ReasonSuspected:
			e.Hint = "try again in a minute, when the pod is supervised again"
		case lifecycle.ReasonNewerState:
			e.Hint = "use the later version of podstead, or delete the pod with podstead delete --force " + held.Pod
		}
		return e
	case errors.As(err, &taken):
		e := failure(http.StatusConflict, "%v", err)
		e.Pod, e.Stopping, e.Terminated = taken.Name, taken.Stopping, taken.Terminated
		switch {
		case taken.Deleting:
			e.Hint = "wait until the pod is deleted: podstead wait " + taken.Name + " --for=delete"
		case taken.File != "": // podstead delete would delete the file
			e.Hint = "change the pod with podstead apply FILE, or with podstead edit " + taken.Name
		case taken.Different:
			e.Hint = "to run the new file, delete the existing pod with podstead delete " + taken.Name
		}
		return e
	case errors.As(err, &conflict):
		return &api.Error{Status: http.StatusConflict, Message: err.Error(), Hint: conflict.Hint}
	case errors.As(err, &used), errors.As(err, &container), errors.As(err, &impossible):
		return failure(http.StatusConflict, "%v", err)
	case errors.As(err, &noRollout):
		e := failure(http.StatusNotFound, "%v", err)
		e.Hint = "apply the file of the pod with podstead apply FILE: pods of the pods directory have generations"
		if noRollout.Scheduled { // a run keeps the definition with which it was started
			e.Hint = "apply the earlier file with podstead apply FILE: the next run has its definition"
		}
		return e
	case errors.As(err, &condition), errors.As(err, &noContainer), errors.Is(err, supervisor.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return failure(http.StatusNotFound, "%v", err)
	case errors.Is(err, disk.UnresponsiveError{}):
		return unresponsive(err)
	case errors.Is(err, supervisor.ErrLeaving), errors.Is(err, context.Canceled):
		return failure(http.StatusServiceUnavailable, "the daemon is stopping")
	}
	return failure(http.StatusInternalServerError, "%v", err)
}

// stream is a response with one JSON value per line.
type stream struct {
	control *http.ResponseController
	enc     *json.Encoder
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	s := &stream{control: http.NewResponseController(w), enc: json.NewEncoder(w)}
	s.enc.SetEscapeHTML(false)
	return s
}

// send writes a value to the buffer of the response.
func (s *stream) send(v any) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.enc.Encode(v)
}

// flush sends buffered values to the client.
func (s *stream) flush() error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.control.Flush()
}

// done ends a stream. With an error it closes the connection, so that the client notices that the stream is incomplete. Otherwise net/http
// writes the end of the response after the handler returns. The deadline of the last write may have expired by then.
func (s *stream) done(err error) {
	if err == nil {
		err = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	if err != nil {
		panic(http.ErrAbortHandler) // net/http aborts the response
	}
}
