package follow

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
)

const (
	// chunkSize is the maximum size of one read of input.
	chunkSize = 32 << 10
	// queuedChunks is the number of reads that are queued while the session is not attached. The detach keys must be read then too.
	queuedChunks = 64
)

// input reads input once for all connections of a session. A read that blocks cannot be interrupted, and would take input from the next
// connection.
type input struct {
	chunks    chan []byte // closed at the end
	err       error       // of the end; set before chunks is closed
	read, eof atomic.Bool
}

func newInput(r io.Reader) *input {
	in := &input{chunks: make(chan []byte, queuedChunks)}
	go func() {
		defer close(in.chunks)
		for {
			buffer := make([]byte, chunkSize)
			n, err := r.Read(buffer)
			if n > 0 {
				in.chunks <- buffer[:n]
			}
			if err != nil {
				in.err = err
				return
			}
		}
	}()
	return in
}

// used reports whether a connection has read input.
func (in *input) used() bool { return in.read.Load() }

// ended reports whether a connection has read the end of the input.
func (in *input) ended() bool { return in.eof.Load() }

// reader returns a reader for a connection that ends with the context. The end of a connection is not EOF, which the container would get.
func (in *input) reader(ctx context.Context) io.Reader { return &reader{input: in, ctx: ctx} }

type reader struct {
	input *input
	ctx   context.Context //nolint:containedctx // of the connection; an io.Reader has no argument for it
	rest  []byte
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	r.input.read.Store(true)
	if len(r.rest) == 0 {
		select {
		case chunk, ok := <-r.input.chunks:
			if !ok {
				r.input.eof.Store(true)
				return 0, r.input.err
			}
			r.rest = chunk
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// sizes passes the size of a terminal on to one connection after the other.
type sizes struct {
	changes <-chan channel.Size

	mu   sync.Mutex
	last channel.Size
}

func newSizes(t connect.Session) *sizes { return &sizes{changes: t.Resize, last: t.Size} }

// follow returns the current size and its changes until the context ends.
func (s *sizes) follow(ctx context.Context) (channel.Size, <-chan channel.Size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		return s.last, nil
	}
	resize := make(chan channel.Size)
	go func() {
		for {
			var size channel.Size
			select {
			case size = <-s.changes:
			case <-ctx.Done():
				return
			}
			s.mu.Lock()
			s.last = size
			s.mu.Unlock()
			select {
			case resize <- size:
			case <-ctx.Done():
				return
			}
		}
	}()
	return s.last, resize
}
