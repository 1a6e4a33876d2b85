package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

const (
	// maxConnections is the maximum number of connections to both sockets.
	maxConnections = 1024
	// reservedConnections are those of them that only root can use, so that other users cannot exclude root.
	reservedConnections = 64
	// maxUserConnections is the maximum number of connections of one user. It does not hold for root.
	maxUserConnections = 256
	// maxReaders is the maximum number of connections to the read-only socket, so that its users cannot exclude those of the other one.
	maxReaders = 512
	// startTimeout is how long a server that closes waits for the rest of requests that it has begun to read.
	startTimeout = 100 * time.Millisecond
	// maxRefused is the maximum number of connections that receive the response that there are too many. Further ones are closed.
	maxRefused = 64
)

// Limit is a limit of the API.
type Limit struct {
	Name, Value string
	// Effect is what happens beyond the limit.
	Effect string
}

// Limits returns the limits of the API.
func Limits() []Limit {
	size := func(n int) string { return fmt.Sprintf("%d KiB", n>>10) }
	if maxBody%(1<<20) != 0 {
		panic("server: maxBody is not a number of MiB")
	}
	return []Limit{
		{
			"Connections", fmt.Sprintf("%d; %d of them are reserved for root", maxConnections, reservedConnections),
			"an idle connection of the user is closed, for root one of any user; if there is none, 429 `TooManyRequests`",
		},
		{"Connections of one user, root excepted", fmt.Sprint(maxUserConnections), "as above"},
		{"Connections to the read-only socket", fmt.Sprint(maxReaders), "as above"},
		{"Streams", "one for each connection", "as above"},
		{"Size of a request header", size(maxHeader), "431, and the connection is closed"},
		{"Time to send a request header, and then the body", readTimeout.String(), "400 `BadRequest`, or the connection is closed"},
		{"Size of a request body", fmt.Sprintf("%d MiB", maxBody>>20), "400 `BadRequest`"},
		{
			"Bodies of all requests in progress", fmt.Sprintf("%d MiB", maxBodies>>20),
			"the request waits; after " + api.CallTimeout.String() + " 429 `TooManyRequests`",
		},
		{"Duration of a request that is not a stream", api.CallTimeout.String(), "an error with the operation that did not complete"},
		{"Duration of a request to remove images", api.RemovalTimeout.String(), "as above"},
		{"Duration of a request to log in to a registry", api.LoginTimeout.String(), "as above"},
		{"Time in which a client must read a response, or the next lines of a stream", writeTimeout.String(), "the connection is closed"},
		{"Time without a request", idleTimeout.String(), "the connection is closed"},
	}
}

// connections counts the connections of a server.
type connections struct {
	mu      sync.Mutex
	total   int
	readers int
	refused int
	byUser  map[uint32]int
	// idle are the connections without a request, that with the oldest one first. They give way to others beyond a limit.
	idle []*conn
	// closing: new connections are closed.
	closing bool
	// answered is closed when no connection is left that had a request when closing began, and no response. nil: closing has not begun.
	answered chan struct{}
}

// conn is a connection of a client.
type conn struct {
	net.Conn

	peer     peer
	known    bool // the kernel has reported the peer
	readOnly bool // it came over the read-only socket
	refused  bool // there are too many connections: requests are rejected

	received atomic.Bool // a part of a request was read, since the last response
	of       *connections
	once     sync.Once
}

// Read reads from the connection.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received.Store(true)
	}
	return n, err
}

// Close closes the connection, and makes room for another one.
func (c *conn) Close() error {
	c.once.Do(func() { c.of.remove(c) })
	return c.Conn.Close()
}

// requested reports whether the client has sent a request, or a part of it.
func (c *conn) requested() bool {
	if c.received.Load() {
		return true
	}
	socket, ok := c.Conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n > 0
}

// track records whether a connection has a request. It is [http.Server.ConnState].
func (n *connections) track(c net.Conn, state http.ConnState) {
	own, ok := c.(*conn)
	if !ok {
		return
	}
	n.mu.Lock()
	waited := len(n.idle) > 0
	n.idle = slices.DeleteFunc(n.idle, func(other *conn) bool { return other == own })
	if state == http.StateIdle {
		own.received.Store(false)
	}
	if !n.closing && (state == http.StateNew || state == http.StateIdle) {
		n.idle = append(n.idle, own)
	}
	if n.closing && waited && len(n.idle) == 0 {
		close(n.answered)
	}
	late := n.closing && state == http.StateNew && !own.requested()
	n.mu.Unlock()
	if late {
		_ = own.Close()
	}
}

// closeIdle closes connections without a request, and new ones. [http.Server.Shutdown] would wait five seconds for the first request of one
// that has had none. Clients of package http often have such a connection: they connect, and meanwhile another connection becomes free.
//
// A connection whose request has not been read whole counts as idle in package http, which closes it. So closeIdle waits until such
// requests are being answered, or for startTimeout.
func (n *connections) closeIdle(ctx context.Context) {
	var idle []*conn
	n.mu.Lock()
	n.closing, n.answered = true, make(chan struct{})
	n.idle = slices.DeleteFunc(n.idle, func(c *conn) bool {
		if c.requested() {
			return false
		}
		idle = append(idle, c)
		return true
	})
	if len(n.idle) == 0 {
		close(n.answered)
	}
	n.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-n.answered:
	case <-ctx.Done():
	}
}

// isFull reports whether a connection is beyond a limit, and which ones may give way to it. n.mu must be held.
func (n *connections) isFull(c *conn) (full bool, instead func(*conn) bool) {
	root := c.known && c.peer.isTrusted()
	limit := maxConnections
	if !root {
		limit -= reservedConnections
	}
	same := func(other *conn) bool {
		return !other.refused && other.peer.uid == c.peer.uid && other.readOnly == c.readOnly
	}
	switch {
	case !root && n.byUser[c.peer.uid] >= maxUserConnections:
		return true, same
	case c.readOnly && n.readers >= maxReaders:
		return true, func(other *conn) bool { return !other.refused && other.readOnly && (root || same(other)) }
	case n.total >= limit:
		return true, func(other *conn) bool { return !other.refused && (root || same(other)) }
	}
	return false, nil
}

// admit is add for a connection that was accepted. Beyond a limit, an idle connection of the same user is closed; for root, of any user.
func (n *connections) admit(c *conn) bool {
	n.mu.Lock()
	var idle *conn
	if full, instead := n.isFull(c); full {
		if i := slices.IndexFunc(n.idle, instead); i >= 0 {
			idle = n.idle[i]
			n.idle = slices.Delete(n.idle, i, i+1)
		}
	}
	n.mu.Unlock()
	if idle != nil {
		_ = idle.Close() // its client connects again
	}
	return n.add(c)
}

// add counts a connection. It returns false if there are too many even to say so.
func (n *connections) add(c *conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if full, _ := n.isFull(c); full {
		if n.refused >= maxRefused {
			return false
		}
		n.refused++
		c.refused = true
		return true
	}
	n.total++
	if c.readOnly {
		n.readers++
	}
	n.byUser[c.peer.uid]++
	return true
}

func (n *connections) remove(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.refused {
		n.refused--
		return
	}
	n.total--
	if c.readOnly {
		n.readers--
	}
	if n.byUser[c.peer.uid]--; n.byUser[c.peer.uid] == 0 {
		delete(n.byUser, c.peer.uid)
	}
}

// limitedListener counts the connections of a listener.
type limitedListener struct {
	net.Listener

	of       *connections
	readOnly bool
}

// Accept returns the next connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, readOnly: l.readOnly, of: l.of}
		if c.peer, c.known = processOf(accepted); !c.known {
			c.peer = peer{uid: nobody, gid: nobody}
		}
		if l.of.admit(c) {
			return c, nil
		}
		_ = accepted.Close() // there is no client to report it to
	}
}

// processOf returns the process at the other end of a connection.
func processOf(c net.Conn) (peer, bool) {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return peer{}, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return peer{}, false
	}
	var cred *unix.Ucred
	var credErr error
	var groups []uint32
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		groups = peerGroups(fd)
	}); err != nil || credErr != nil {
		return peer{}, false
	}
	return peer{cred.Pid, cred.Uid, cred.Gid, groups}, true
}

// withConn adds a connection and its peer to the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	own, ok := c.(*conn)
	if !ok {
		return ctx
	}
	ctx = context.WithValue(ctx, connKey{}, own)
	if own.known {
		ctx = context.WithValue(ctx, peerKey{}, own.peer)
	}
	return ctx
}

type connKey struct{}

// connOf returns the connection of a request; nil: not known.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// isReader reports whether the context is that of a request over the read-only socket.
func isReader(ctx context.Context) bool {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c != nil && c.readOnly
}

// isReadOnly reports whether a request came over the read-only socket.
func isReadOnly(r *http.Request) bool { return isReader(r.Context()) }

// admitted rejects the requests of connections beyond the limits.
func (s *Server) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r)
		if c == nil || !c.refused {
			next.ServeHTTP(w, r)
			return
		}
		boundBody(w, r)
		w.Header().Set("Connection", "close")
		e := failure(http.StatusTooManyRequests, "too many connections of uid %d", c.peer.uid)
		e.Hint = "end clients that follow logs and events, then try again"
		s.reply(w, r, nil, e)
	})
}
