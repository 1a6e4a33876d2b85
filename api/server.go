package api

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
	"regexp"
	"sync"
	"time"

	"github.com/podstead/podstead/supervisor"
)

const (
	// readLimit is what a client has to send a request's head, and then its body.
	readLimit = 10 * time.Second
	// writeLimit is what a client has to take an answer, or the next lines of a stream. A slower one is cut off.
	writeLimit = 30 * time.Second
	// callLimit bounds what a request that is no stream may take.
	callLimit = time.Minute
	// historyLimit is what the disk has to give the events of a pod.
	historyLimit = 5 * time.Second
	// maxBody is above what a pod file may have, in the longest spelling of JSON.
	maxBody = 8 << 20
)

// agentPattern is what a client may call itself.
var agentPattern = regexp.MustCompile(`^podstead( [a-z]{1,16}){0,2}$`)

// Options are what a [Server] is made of. Supervisor and Leave are needed.
type Options struct {
	Supervisor *supervisor.Supervisor
	// LogDir is where the logs of containers are, as <LogDir>/<pod>_<uid>/<container>/<restart count>.log.
	LogDir string
	// Secrets are the secrets whose values are redacted in explanations; nil: none.
	Secrets SecretSource
	Version Version
	// Leave is told that the daemon is to leave, and by whom. It must not block, and may be called more than once.
	Leave func(by string)
	Log   *slog.Logger // nil: discarded
}

// Server answers the clients of a daemon. It is safe for concurrent use.
type Server struct {
	o    Options
	http *http.Server
	end  context.CancelFunc // ends all streams

	mu       sync.Mutex
	requests int           // under way
	moved    chan struct{} // closed when a request begins or ends
}

// NewServer returns a server; [Server.Serve] begins its work.
func NewServer(ctx context.Context, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, moved: make(chan struct{})}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	mux := http.NewServeMux()
	for pattern, call := range map[string]func(*http.Request) (any, error){
		"GET /v1/health":                           func(*http.Request) (any, error) { return struct{}{}, nil },
		"GET /v1/version":                          func(*http.Request) (any, error) { return o.Version, nil },
		"POST /v1/pods":                            s.create,
		"GET /v1/pods/{name}":                      s.get,
		"DELETE /v1/pods/{name}":                   s.stop,
		"GET /v1/pods/{name}/why":                  s.why,
		"GET /v1/why":                              s.whyAll,
		"POST /v1/pods/{name}/ephemeral":           s.addEphemeral,
		"PUT /v1/pods/{name}/conditions/{type...}": s.setCondition,
		"PUT /v1/sessions/{id}":                    s.touch,
		"POST /v1/daemon/leave":                    s.leave,
		"GET /v1/volumes":                          s.volumes,
		"DELETE /v1/volumes/{name}":                s.removeVolume,
	} {
		mux.HandleFunc(pattern, s.answer(call))
	}
	mux.HandleFunc("GET /v1/pods", s.pods)
	mux.HandleFunc("GET /v1/events", s.events)
	mux.HandleFunc("GET /v1/pods/{name}/output", s.output)
	mux.HandleFunc("/", s.answer(func(r *http.Request) (any, error) {
		return nil, failure(http.StatusNotFound, "there is no %s %s", r.Method, r.URL.Path)
	}))
	s.http = &http.Server{
		Handler:           s.count(mux),
		ReadHeaderTimeout: readLimit,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withPeer,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s
}

// Serve answers on the listener until [Server.Close], and closes the listener.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends the contexts of all requests, which breaks streams off, waits for the answers for as long as its own context
// allows, and closes the listener.
func (s *Server) Close(ctx context.Context) error {
	s.end()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close()
	}
	return err
}

// Busy reports whether any request is under way, and gives a channel that is closed when one begins or ends after that.
func (s *Server) Busy() (busy bool, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests > 0, s.moved
}

// count keeps account of the requests that are under way.
func (s *Server) count(next http.Handler) http.Handler {
	move := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests += n
		close(s.moved)
		s.moved = make(chan struct{})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		move(1)
		defer move(-1)
		next.ServeHTTP(w, r)
	})
}

// answer makes a handler of a call that is no stream.
func (s *Server) answer(call func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callLimit)
		defer cancel()
		control := http.NewResponseController(w)
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

// readBody reads the body of a request in time. After that there is no time limit for reads: one that waits is how the
// server notices that the client is gone.
func readBody(control *http.ResponseController, r io.Reader) ([]byte, error) {
	_ = control.SetReadDeadline(time.Now().Add(readLimit))
	body, err := io.ReadAll(r)
	_ = control.SetReadDeadline(time.Time{})
	return body, err
}

// reply writes an answer or, if there is one, the error.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, v any, err error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeLimit))
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		e := asError(err)
		w.WriteHeader(e.Status)
		v = e
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		s.o.Log.LogAttrs(r.Context(), slog.LevelDebug, "answer not taken", slog.Any("error", err))
	}
}

// asError classifies an error by what the client is to do about it.
func asError(err error) *Error {
	var taken *supervisor.NameTakenError
	var refused *supervisor.RefusedError
	var used *supervisor.VolumeInUseError
	var container *supervisor.ContainerTakenError
	var condition *supervisor.ConditionUnknownError
	e, ours := errors.AsType[*Error](err)
	switch {
	case ours:
		return e
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.As(err, &taken), errors.As(err, &used), errors.As(err, &container):
		return failure(http.StatusConflict, "%v", err)
	case errors.As(err, &condition), errors.Is(err, supervisor.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return failure(http.StatusNotFound, "%v", err)
	case errors.Is(err, supervisor.ErrLeaving), errors.Is(err, context.Canceled):
		return failure(http.StatusServiceUnavailable, "the daemon is about to leave")
	}
	return failure(http.StatusInternalServerError, "%v", err)
}

// stream is an answer of one JSON value a line.
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

// send writes one value, which may stay in a buffer until flush.
func (s *stream) send(v any) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return s.enc.Encode(v)
}

// flush hands over what was sent.
func (s *stream) flush() error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return s.control.Flush()
}

// done ends a stream: with nil as it should be, else by breaking the connection.
func (s *stream) done(err error) {
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's way to break a response off
	}
}
