package attach

import (
	"encoding/binary"
	"io"
	"sync"
)

const (
	// roomyQueue is the size of the queue of a client, in bytes, above which the container waits for the client.
	roomyQueue = 128 << 10
	// fullQueue is the size above which a client is disconnected. A queue grows above roomyQueue by what the container writes without
	// waiting: one read from each stream, and, when it has exited, the rest in its pipes.
	fullQueue = 1 << 20
	// keptOutput is the size of the output that is kept for the first client of an interactive container.
	keptOutput = 64 << 10
	// maxClients is the maximum number of clients of a container.
	maxClients = 16
)

// Options describe a container.
type Options struct {
	// Stdin is the standard input of the container; nil: it has none.
	Stdin *Stdin
	// Terminal is true if the container has a terminal.
	Terminal bool
	// Resize changes the size of the terminal.
	Resize func(Size) error
}

// Container copies the output of a container to clients. Its methods are safe for concurrent use.
type Container struct {
	o Options

	mu      sync.Mutex
	room    sync.Cond // signaled when a queue shrinks, a client leaves, or the container exits
	clients map[*client]struct{}
	open    int // streams that can have more output
	exited  bool
	code    uint32
	ended   bool // all clients got the exit code
	kept    [][]byte
	keeps   bool // until the first client
	size    int  // of kept
	dropped bool // part of the output was not kept
}

// NewContainer returns a container without clients.
func NewContainer(o Options) *Container {
	c := &Container{o: o, clients: map[*client]struct{}{}, keeps: o.Stdin != nil || o.Terminal}
	c.room.L = &c.mu
	return c
}

// Output returns a writer that copies output of a stream to clients. Close reports the end of the stream. Call Output before the container
// starts. The writer may be used by one goroutine at a time.
//
// A write first waits until all clients have room.
func (c *Container) Output(stream string) io.WriteCloser {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	o := &output{container: c, kind: kindStdout}
	if stream == Stderr {
		o.kind = kindStderr
	}
	return o
}

type output struct {
	container *Container
	kind      kind
	done      bool
}

// Write implements [io.Writer]. It never fails.
func (o *output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxPayload)
		o.container.awaitRoom()
		o.container.send(o.kind, rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

// Close implements [io.Closer]. It can be repeated.
func (o *output) Close() error {
	if !o.done {
		o.done = true
		o.container.streamEnded()
	}
	return nil
}

// awaitRoom waits until no client has a full queue. The wait is bounded because a client that does not read is disconnected after
// [WriteTimeout]. It does not wait for clients of an exited container, so that they do not delay its deletion.
func (c *Container) awaitRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.exited && c.isCongested() {
		c.room.Wait()
	}
}

func (c *Container) isCongested() bool {
	for cl := range c.clients {
		if cl.queued > roomyQueue {
			return true
		}
	}
	return false
}

// send queues output for all clients. It does not block.
func (c *Container) send(k kind, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.clients) == 0 && !c.keeps {
		return
	}
	f := frame(k, data)
	for cl := range c.clients {
		if cl.wants(k) {
			cl.enqueue(f)
		}
	}
	if c.keeps {
		c.keep(f)
	}
}

// keep keeps a frame for the first client.
func (c *Container) keep(f []byte) {
	c.kept = append(c.kept, f)
	c.size += len(f)
	for c.size > keptOutput && len(c.kept) > 1 {
		c.size -= len(c.kept[0])
		c.kept[0] = nil
		c.kept = c.kept[1:]
		c.dropped = true
	}
}

func (c *Container) streamEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	c.endLocked()
}

// Exited reports the exit of the container.
func (c *Container) Exited(code uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exited {
		return
	}
	c.exited, c.code = true, code
	c.room.Broadcast()
	c.endLocked()
}

// endLocked sends all clients the exit code when the container has exited and its output is complete.
func (c *Container) endLocked() {
	if !c.exited || c.open > 0 || c.ended {
		return
	}
	c.ended = true
	for cl := range c.clients {
		cl.enqueue(exitFrame(c.code))
		cl.finish()
	}
}

func exitFrame(code uint32) []byte {
	return frame(kindExited, binary.BigEndian.AppendUint32(nil, code))
}

// Close closes the standard input and disconnects the clients of a container that was deleted or could not be created. Clients that are
// being sent the exit code are disconnected when they have read it.
func (c *Container) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if !c.ended {
		c.ended = true
		end := frame(kindDisconnected, []byte("the container was deleted"))
		if c.exited {
			end = exitFrame(c.code)
		}
		for cl := range c.clients {
			cl.enqueue(end)
			cl.finish()
		}
	}
	c.exited = true
	c.kept, c.keeps = nil, false
	c.room.Broadcast()
	c.mu.Unlock()
	c.o.Stdin.close()
}

// Clients returns the number of clients.
func (c *Container) Clients() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.clients)
}

// add adds a client, if the request can be fulfilled.
func (c *Container) add(cl *client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return &Error{Reason: NotFound, Message: "the container has exited"}
	case len(c.clients) >= maxClients:
		return &Error{Reason: TooMany, Message: "too many clients are attached to the container"}
	}
	var r reply
	if cl.request.FromStart && c.keeps {
		r.Incomplete = c.dropped
	}
	first, err := jsonFrame(kindReply, r)
	if err != nil {
		return err
	}
	cl.enqueue(first)
	if cl.request.FromStart && c.keeps {
		for _, f := range c.kept {
			if cl.wants(kind(f[0])) {
				cl.enqueue(f)
			}
		}
	}
	c.kept, c.keeps = nil, false
	c.clients[cl] = struct{}{}
	return nil
}

// remove removes a client that is not written to any more.
func (c *Container) remove(cl *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, cl)
	cl.drop()
	c.room.Broadcast()
}
