package ui

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

//go:embed assets
var assets embed.FS

const (
	// IdleTimeout is the time without an open page after which [Server.Serve] returns.
	IdleTimeout = 30 * time.Minute
	// maxConnections bounds the connections to the server. A page has at most six.
	maxConnections = 64
	headerTimeout  = 10 * time.Second
	maxHeader      = 16 << 10
	// requestTimeout bounds a request. A stream renews it with each value.
	requestTimeout = api.RemovalTimeout + time.Minute
	// writeTimeout bounds one value of a stream.
	writeTimeout = 30 * time.Second
)

// ErrIdle is the error of [Server.Serve] if no page was open for [IdleTimeout].
var ErrIdle = fmt.Errorf("no page was open for %.0f minutes", IdleTimeout.Minutes())

// Server is the server of the page.
type Server struct {
	client *client.Client
	guard  *guard
	listen net.Listener
	mux    *http.ServeMux
	source *live.Source
	// actions reports that the page may change pods.
	actions bool
	// searching has a value while a search is in progress, and terminals one for each terminal.
	searching, terminals chan struct{}
	// These are [IdleTimeout] and [headerTimeout], unless a test changes them.
	idle, header time.Duration

	mu   sync.Mutex
	open int       // requests with the key in progress
	seen time.Time // the end of the last one
}

// Listen listens on an address of [ParseAddress]. Port 0 is a free port. The server must be served.
func Listen(ctx context.Context, c *client.Client, address netip.AddrPort) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, err
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return newServer(c, l, bound), nil
}

func newServer(c *client.Client, l net.Listener, address netip.AddrPort) *Server {
	s := &Server{
		client: c, source: live.New(c), guard: newGuard(address), listen: l, mux: http.NewServeMux(),
		searching: make(chan struct{}, 1), terminals: make(chan struct{}, maxTerminals),
		idle: IdleTimeout, header: headerTimeout, seen: time.Now(),
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the name is a constant
	}
	s.mux.Handle("GET /", http.FileServerFS(files))
	s.mux.HandleFunc("GET /timeline.css", style)
	s.mux.HandleFunc("POST /enter", s.guard.enter)
	s.mux.HandleFunc("POST /api/", http.NotFound)
	for path, handle := range map[string]http.HandlerFunc{
		"/api/pods": s.pods, "/api/pod": s.pod, "/api/timeline": s.timeline, "/api/around": s.around,
		"/api/logs": s.logs, "/api/search": s.search, "/api/host": s.host, "/api/alive": alive,
	} {
		s.mux.HandleFunc("GET "+path, handle)
	}
	return s
}

// URL is the address of the page with the token.
func (s *Server) URL() string {
	return "http://" + s.listen.Addr().String() + "/#token=" + s.guard.token
}

// Serve serves the page until the context ends, or returns [ErrIdle].
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: s.header, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // everybody on the host can cause these errors
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(netutil.LimitListener(s.listen, maxConnections)) }()
	tick := time.NewTicker(max(s.idle/30, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), h.Close())
		case now := <-tick.C:
			if s.isIdle(now) {
				return errors.Join(ErrIdle, h.Close())
			}
		}
	}
}

func (s *Server) isIdle(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open == 0 && now.Sub(s.seen) >= s.idle
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	controller := http.NewResponseController(w)
	if r.ContentLength != 0 { // a ReadTimeout of the server would end streams too
		_ = controller.SetReadDeadline(time.Now().Add(s.header)) // the connection is closed if that fails
	}
	known := s.guard.has(r)
	if !known { // other users of the host keep no connection
		w.Header().Set("Connection", "close")
	}
	if !s.guard.check(w, r) {
		return
	}
	_ = controller.SetWriteDeadline(time.Now().Add(requestTimeout)) // the connection is closed if that fails
	if strings.HasPrefix(r.URL.Path, "/api/") {
		if !known {
			refuse(w, http.StatusUnauthorized, "open the URL that podstead ui has printed")
			return
		}
		if _, err := zoneOf(r); err != nil {
			refuse(w, http.StatusBadRequest, zoneHeader+": "+err.Error())
			return
		}
		s.count(1)
		defer s.count(-1)
	}
	s.mux.ServeHTTP(w, r)
}

// count counts requests in progress.
func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
	s.seen = time.Now()
}

// alive answers pages that are hidden, so that the server does not end while they are open.
func alive(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// fail answers with an error of the daemon.
func fail(w http.ResponseWriter, err error) {
	if e, ok := errors.AsType[*api.Error](err); ok && !errors.Is(err, api.ErrUnavailable) {
		refuse(w, e.Status, e.Message)
		return
	}
	refuse(w, http.StatusBadGateway, err.Error())
}
