// Package channel carries the streams of a session over a WebSocket: standard input, output and error of a command, or the data of a
// forwarded port. The messages are those of the Kubernetes subprotocol v5.channel.k8s.io (KEP-4006): the first byte is a channel, the rest
// is data. Both sides of a session use the package.
//
// The package owns the connection and its goroutines. It knows nothing about pods and commands.
//
// Back-pressure: each side keeps at most [Window] bytes of a channel that were not read. With the subprotocol [FlowSubprotocol], which
// [Dial] offers, a sender waits until the receiver has room, so that a full channel holds up no other message. With [Subprotocol] alone,
// the receiver reads no further message while a channel is full, and notices a lost peer because it cannot write to it.
package channel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/podstead/podstead/internal/session"
)

const (
	// Subprotocol is the subprotocol of Kubernetes.
	Subprotocol = "v5.channel.k8s.io"
	// FlowSubprotocol is Subprotocol with one more message: the byte 5, a channel and a number of bytes (32 bits, big endian). The receiver
	// of a channel sends it to permit the sender so many bytes more than the first [Window] bytes.
	FlowSubprotocol = "v1.flow.channel.podstead"
)

// ID is a channel: the first byte of a message.
type ID byte

// The channels. Of a forwarded port, both directions are [Data].
const (
	Stdin  ID = 0
	Stdout ID = 1
	Stderr ID = 2
	Data      = Stdin

	statusID ID = 3 // a Status, at the end
	resizeID ID = 4
	windowID ID = 5
	closeID  ID = 255 // the sender closes the channel in the next byte

	streams = 3 // channels that carry data
)

const (
	// Window is how many bytes of a channel the receiver keeps until they are read.
	Window = 256 << 10
	// maxMessage is the maximum size of a received message, without its first byte.
	maxMessage = 64 << 10
	// chunk is the maximum size of a sent message, as that of kubectl.
	chunk = 32 << 10
	// maxStatusText is the maximum size of the message in a status.
	maxStatusText = 4 << 10
)

// limits are the timeouts of a connection.
type limits struct {
	write  time.Duration // for one message
	ping   time.Duration // between an answer and the next ping
	answer time.Duration // for the answer to a ping, after which there is another one
	lost   time.Duration // without any message or answer from the peer
}

var defaultLimits = limits{write: 30 * time.Second, ping: 10 * time.Second, answer: 10 * time.Second, lost: 30 * time.Second}

// ErrLost is wrapped by all errors of a connection that ended without a status.
var ErrLost = errors.New("connection lost")

// errClosed is the error after [Conn.Close].
var errClosed = fmt.Errorf("%w: closed on this side", ErrLost)

// Size is the size of a terminal in characters.
type Size = session.Size

// protocolError is a message that the protocol does not permit.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// message handles a received message.
func (c *Conn) message(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	id, b := ID(b[0]), b[1:]
	switch id {
	case Stdin, Stdout, Stderr:
		if r := c.in[id]; r != nil {
			return r.put(b)
		}
	case statusID:
		return c.receiveStatus(b)
	case resizeID:
		return c.receiveSize(b)
	case windowID:
		if c.flow {
			return c.receiveWindow(b)
		}
	case closeID:
		if len(b) != 1 {
			return protocolError("a message that closes a channel must have two bytes")
		}
		if id := ID(b[0]); id < streams && c.in[id] != nil {
			c.in[id].finish(nil)
		}
	}
	return nil // kubectl ignores unknown channels, too
}

func (c *Conn) receiveStatus(b []byte) error {
	if c.server {
		return nil
	}
	status := &Status{}
	if err := json.Unmarshal(b, status); err != nil {
		return protocolError("the status is invalid: " + err.Error())
	}
	c.end(status, nil)
	return nil
}

func (c *Conn) receiveSize(b []byte) error {
	var size Size
	if err := json.Unmarshal(b, &size); err != nil {
		return protocolError("the size of the terminal is invalid: " + err.Error())
	}
	select {
	case <-c.sizes: // an older size that was not read
	default:
	}
	c.sizes <- size // only this goroutine sends
	return nil
}

func (c *Conn) receiveWindow(b []byte) error {
	if len(b) != 5 || b[0] >= streams {
		return protocolError("a message that permits data must name a channel and a number")
	}
	return c.out[b[0]].grant(int64(binary.BigEndian.Uint32(b[1:])))
}

// permit permits the peer to send n more bytes.
func (c *Conn) permit(id ID, n int) error {
	return c.send(binary.BigEndian.AppendUint32([]byte{byte(windowID), byte(id)}, uint32(n)))
}
