package attach

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Stdin is the standard input of a container: a FIFO from which the OCI runtime's side copies to the container's process. It is held open,
// so that the process gets no EOF when a client disconnects. Nil is a container without standard input. Its methods are safe for concurrent
// use.
type Stdin struct {
	path string
	once bool
	// closeIO closes the end that the task service holds.
	closeIO func() error

	mu     sync.Mutex
	hold   *os.File // the end for writing; nil: closed
	reader *os.File // until the container has opened the FIFO; an end for writing cannot be opened without a reader
	used   bool     // a client has attached
	opened bool     // the container had time to open the FIFO
}

const (
	openTimeout = time.Second
	openRetry   = 10 * time.Millisecond
)

// NewStdin creates the FIFO of a container's standard input. If once is true, the standard input is closed when the first client's input
// has ended. closeIO then closes the end that the task service holds.
func NewStdin(path string, once bool, closeIO func() error) (_ *Stdin, err error) {
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("create fifo %s: %w", path, err)
	}
	s := &Stdin{path: path, once: once, closeIO: closeIO}
	if s.reader, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		return nil, err
	}
	if s.hold, err = openForWriting(path); err != nil {
		return nil, errors.Join(err, s.reader.Close())
	}
	return s, nil
}

func openForWriting(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
}

// Path is the path of the FIFO.
func (s *Stdin) Path() string { return s.path }

// Created closes the end for reading. Call it when the container has opened the FIFO or its creation has failed: writers must notice when
// the container closes its standard input.
func (s *Stdin) Created() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != nil {
		_ = s.reader.Close() // nothing was read from it
		s.reader = nil
	}
}

// open returns an end for writing for a client. It is nil if the process has closed its standard input.
func (s *Stdin) open() (*os.File, error) {
	if s == nil {
		return nil, &Error{Reason: NoStdin, Message: "the container has no standard input"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.hold == nil:
		return nil, &Error{Reason: NoStdin, Message: "standard input of the container was closed after its first client"}
	case s.once && s.used:
		return nil, &Error{Reason: NoStdin, Message: "standard input of the container is used by its only client"}
	}
	f, err := openForWriting(s.path)
	// The OCI runtime's side opens the FIFO in the background.
	for end := time.Now().Add(openTimeout); errors.Is(err, unix.ENXIO) && !s.opened && time.Now().Before(end); {
		<-time.After(openRetry)
		f, err = openForWriting(s.path)
	}
	s.opened = true
	if errors.Is(err, unix.ENXIO) {
		f, err = nil, nil
	}
	s.used = s.used || err == nil
	return f, err
}

// reopen takes back an open for a client that cannot be served.
func (s *Stdin) reopen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = false
}

// clientDone is called at EOF of the input of a client.
func (s *Stdin) clientDone() {
	if s != nil && s.once {
		s.close()
		_ = s.closeIO() // fails only if the container has exited
	}
}

// Close closes the held end: the container reads EOF when no client is attached. It can be repeated.
func (s *Stdin) Close() { s.close() }

// close closes the held end.
func (s *Stdin) close() {
	if s == nil {
		return
	}
	s.Created()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != nil {
		_ = s.hold.Close() // nothing was written to it
		s.hold = nil
	}
}
