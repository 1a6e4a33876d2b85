package exec

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/containerd/containerd/v2/pkg/cio"

	"github.com/podstead/podstead/internal/session"
)

// copySize is the size of the buffer of a stream.
const copySize = 32 << 10

// streams connect the FIFOs of a session's command with its client. They are the [cio.IO] of the command.
type streams struct {
	command *session.Command
	started chan struct{} // closed by start or Cancel
	once    sync.Once     // closes started

	config         cio.Config
	fifos          *cio.DirectIO
	stdout, stderr sink
	pumps          sync.WaitGroup // of the output
}

func newStreams(c *session.Command) *streams {
	return &streams{command: c, started: make(chan struct{})}
}

// start begins to copy the output, when the command was started. If it cannot be started, the FIFOs may have the error of the OCI runtime,
// which is returned.
func (s *streams) start() { s.once.Do(func() { close(s.started) }) }

// creator returns a function that creates the FIFOs in dir. The shim needs FIFOs for the output also if the client wants none.
func (s *streams) creator(ctx context.Context, dir string) cio.Creator {
	ctx = context.WithoutCancel(ctx) // the opening of a FIFO ends with Cancel
	return func(id string) (cio.IO, error) {
		set, err := cio.NewFIFOSetInDir(dir, id, s.command.TTY)
		if err != nil {
			return nil, err
		}
		if s.command.Stdin == nil {
			set.Stdin = ""
		}
		if s.command.TTY {
			set.Stderr = ""
		}
		s.config = set.Config
		if s.fifos, err = cio.NewDirectIO(ctx, set); err != nil {
			return nil, err // the FIFOs are removed
		}
		s.stdout.w, s.stderr.w = s.command.Stdout, s.command.Stderr
		s.pump(&s.stdout, s.fifos.Stdout)
		if !s.command.TTY {
			s.pump(&s.stderr, s.fifos.Stderr)
		}
		return s, nil
	}
}

func (s *streams) pump(to *sink, from io.ReadCloser) {
	s.pumps.Go(func() {
		<-s.started
		_, _ = io.CopyBuffer(to, from, make([]byte, copySize)) // a sink does not fail, and the end of a FIFO has no cause
		_ = from.Close()
	})
}

// feed starts to copy the input. The channel is closed when all of it was written, and the shim's side of the FIFO must be closed. It is
// nil for a terminal, whose process gets no EOF but that of a typed Ctrl-D: with the FIFO, the shim would close the terminal.
func (s *streams) feed() <-chan struct{} {
	if s.command.Stdin == nil {
		return nil
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		buffer := make([]byte, copySize)
		_, _ = io.CopyBuffer(s.fifos.Stdin, s.command.Stdin, buffer)
		if !s.command.TTY {
			_ = s.fifos.Stdin.Close()
		}
		// The command does not read any more, but the client may not be able to do anything else before its input is read.
		_, _ = io.CopyBuffer(io.Discard, s.command.Stdin, buffer)
	}()
	if s.command.TTY {
		return nil
	}
	return written
}

// detach discards all further output.
func (s *streams) detach() {
	s.stdout.detached.Store(true)
	s.stderr.detached.Store(true)
}

// progress returns how many bytes of output were received.
func (s *streams) progress() int64 { return s.stdout.received.Load() + s.stderr.received.Load() }

// busy reports whether the client is receiving output.
func (s *streams) busy() bool { return s.stdout.writing.Load() || s.stderr.writing.Load() }

// Config implements [cio.IO].
func (s *streams) Config() cio.Config { return s.config }

// Cancel implements [cio.IO]. It closes this side of all FIFOs. Without a start, no output is copied.
func (s *streams) Cancel() {
	s.once.Do(func() {
		s.detach()
		close(s.started)
	})
	s.fifos.Cancel()
	for _, c := range []io.Closer{s.fifos.Stdin, s.fifos.Stdout, s.fifos.Stderr} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// Wait implements [cio.IO]. It waits for the end of the output.
func (s *streams) Wait() { s.pumps.Wait() }

// Close implements [cio.IO]. It removes the FIFOs.
func (s *streams) Close() error { return s.fifos.Close() }

// sink writes output to a client. It never fails, so that a command does not wait for a client that has disconnected.
type sink struct {
	w        io.Writer // nil: the output is discarded
	received atomic.Int64
	writing  atomic.Bool
	detached atomic.Bool
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.received.Add(int64(len(p)))
	if s.w == nil || s.detached.Load() {
		return len(p), nil
	}
	s.writing.Store(true)
	defer s.writing.Store(false)
	if _, err := s.w.Write(p); err != nil {
		s.detached.Store(true)
	}
	return len(p), nil
}
