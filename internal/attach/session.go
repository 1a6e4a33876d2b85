package attach

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// ErrNoServer is the error if the server of a container cannot be reached: the monitor, or the shim of an earlier version.
var ErrNoServer = errors.New("the monitor of the container serves no attach clients")

// Session is a connection to a container. Next must be called by one goroutine; the other methods are safe for concurrent use.
type Session struct {
	// Incomplete is true if not all output from the start of the container is kept, see [Request.FromStart].
	Incomplete bool
	// Lost is the reason of the [*DisconnectedError] when the server is lost and the container keeps running. If it is empty, the container
	// ends with the server.
	Lost string

	conn net.Conn
	in   *bufio.Reader
	buf  []byte

	mu sync.Mutex // guards writing
}

// ExitedError is the result of a session whose container has exited.
type ExitedError struct{ Code uint32 }

// Error returns the exit code in words.
func (e *ExitedError) Error() string { return fmt.Sprintf("the container exited with code %d", e.Code) }

// DisconnectedError is the result of a session whose client the shim or the monitor has disconnected, or whose monitor was lost.
type DisconnectedError struct{ Reason string }

// Error returns the reason.
func (e *DisconnectedError) Error() string { return e.Reason }

// Open opens a session with a container of the sandbox whose bundle is dir. If the request is rejected, the error is an [*Error]. The
// context bounds the opening only.
func Open(ctx context.Context, dir string, r Request) (*Session, error) {
	// The path of the socket may be too long for an address.
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), Socket))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	s := &Session{conn: conn, in: bufio.NewReaderSize(conn, headerSize+maxPayload), buf: make([]byte, maxPayload)}
	if err := s.open(ctx, r); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, r Request) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	f, err := jsonFrame(kindRequest, r)
	if err != nil {
		return err
	}
	if err := s.write(f); err != nil {
		return err
	}
	k, payload, err := readFrame(s.in, s.buf)
	switch {
	case !stop():
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("read response: %w", err)
	}
	var answer reply
	if err := json.Unmarshal(payload, &answer); err != nil || k != kindReply {
		return errors.Join(errors.New("unexpected response"), err)
	}
	s.Incomplete = answer.Incomplete
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// Next waits for output, and returns it with its stream. The data are valid until the next call. After the last output the error is an
// [*ExitedError] or a [*DisconnectedError]. Any other error means that the server was lost or the session was closed.
func (s *Session) Next() (stream string, data []byte, err error) {
	for {
		k, payload, err := readFrame(s.in, s.buf)
		switch {
		case err != nil && s.Lost != "" && !errors.Is(err, net.ErrClosed):
			return "", nil, &DisconnectedError{Reason: s.Lost}
		case err != nil:
			return "", nil, fmt.Errorf("connection to the server lost: %w", err)
		case k == kindStdout:
			return Stdout, payload, nil
		case k == kindStderr:
			return Stderr, payload, nil
		case k == kindExited && len(payload) == 4:
			return "", nil, &ExitedError{Code: binary.BigEndian.Uint32(payload)}
		case k == kindDisconnected:
			return "", nil, &DisconnectedError{Reason: string(payload)}
		}
	}
}

// Write writes to the standard input of the container. It blocks while the container does not read.
func (s *Session) Write(data []byte) (int, error) {
	for sent := 0; ; {
		n := min(len(data)-sent, maxPayload)
		if n == 0 {
			return sent, nil
		}
		if err := s.write(frame(kindStdin, data[sent:sent+n])); err != nil {
			return sent, err
		}
		sent += n
	}
}

// CloseStdin closes the input of this client.
func (s *Session) CloseStdin() error { return s.write(frame(kindStdinClosed, nil)) }

// Resize changes the size of the container's terminal, if it has one.
func (s *Session) Resize(size Size) error {
	f, err := jsonFrame(kindResize, size)
	if err != nil {
		return err
	}
	return s.write(f)
}

func (s *Session) write(f []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conn.Write(f)
	return err
}

// Close disconnects. Other calls return with an error. The container keeps running.
func (s *Session) Close() error { return s.conn.Close() }

var _ io.Writer = (*Session)(nil)
