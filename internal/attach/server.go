package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is the name of the socket in the bundle of a sandbox.
const Socket = "attach.sock"

const (
	// requestTimeout bounds reading a request and writing that it is rejected.
	requestTimeout = 5 * time.Second
	// maxConnections is the maximum number of connections of a server, unless it has another one. It is for the containers of one sandbox.
	maxConnections = 64
)

// Server serves the clients of all containers of a sandbox. It is safe for concurrent use.
type Server struct {
	// MaxConnections is the maximum number of connections. It must not be changed while the server serves.
	MaxConnections int

	mu          sync.Mutex
	containers  map[string]*Container
	connections int
}

// NewServer returns a server without containers.
func NewServer() *Server {
	return &Server{MaxConnections: maxConnections, containers: map[string]*Container{}}
}

// Add adds a container.
func (s *Server) Add(id string, c *Container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers[id] = c
}

// Remove removes a container and closes it, if the server has it.
func (s *Server) Remove(id string) {
	s.mu.Lock()
	c := s.containers[id]
	delete(s.containers, id)
	s.mu.Unlock()
	c.Close()
}

func (s *Server) find(id string) *Container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.containers[id]
}

// Listen opens the socket at a path, which must be shorter than 108 bytes. Only this user can connect.
func Listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Serve serves connections until the listener is closed.
func (s *Server) Serve(l *net.UnixListener) error {
	for {
		conn, err := l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
			<-time.After(requestTimeout) // the connection stays in the backlog
			continue
		case err != nil:
			return fmt.Errorf("accept attach connection: %w", err)
		}
		if !s.begin() {
			_ = conn.Close()
			continue
		}
		go func() {
			defer s.end()
			s.serve(conn)
		}()
	}
}

func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections >= s.MaxConnections {
		return false
	}
	s.connections++
	return true
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections--
}

// serve serves a connection, and closes it.
func (s *Server) serve(conn *net.UnixConn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(requestTimeout))
	if !isOwnUser(conn) {
		return
	}
	k, payload, err := readFrame(conn, make([]byte, maxPayload))
	var request Request
	if err != nil || k != kindRequest || json.Unmarshal(payload, &request) != nil {
		return
	}
	c := s.find(request.Container)
	if c == nil {
		reject(conn, &Error{Reason: NotFound, Message: "no such container"})
		return
	}
	cl := newClient(c, conn, request)
	if err := cl.open(); err != nil {
		reject(conn, err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	cl.serve()
}

func reject(conn net.Conn, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Message: err.Error()}
	}
	if f, err := jsonFrame(kindReply, reply{Error: e}); err == nil {
		_, _ = conn.Write(f) // the client may be gone
	}
}

// isOwnUser reports whether the peer runs as this user. The socket can be connected to by others until its mode is set.
func isOwnUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	_ = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		own = err == nil && int(cred.Uid) == os.Geteuid()
	})
	return own
}
