// Package attach connects clients to the standard streams of running containers, from now on. The output of a container is copied to each
// client beside its log, and clients write to its standard input.
//
// The shim serves the connections on a Unix socket in the bundle of the sandbox, so that the streams of a container survive the daemon. A
// [Server] has a [Container] for each container of the pod. The daemon opens a [Session] for each client.
//
// A client that stops reading delays the container for at most [WriteTimeout]. Then it is disconnected. The log gets all output in any
// case, and the memory for a client is bounded.
//
// The package owns the connections and the standard input of containers. It has no notion of logs and of the OCI runtime.
package attach

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Streams of a container's output.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// kind is the type of a frame. A frame is its kind, the length of its payload as 4 bytes, and the payload.
type kind byte

const (
	kindRequest      kind = 1 + iota // a Request, the first frame of a client
	kindReply                        // a reply, the first frame of the server
	kindStdin                        // input
	kindStdinClosed                  // the end of the input
	kindResize                       // a Size
	kindStdout                       // output
	kindStderr                       // output
	kindExited                       // the exit code; the last frame of the server
	kindDisconnected                 // a text, why the server disconnects the client; the last frame of the server
)

const (
	headerSize = 5
	// maxPayload is the maximum size of a payload. It is the size of one read from a container's pipe.
	maxPayload = 32 << 10
)

// Request selects a container and its streams.
type Request struct {
	// Container is the engine's ID of the container.
	Container string `json:"container"`
	Stdin     bool   `json:"stdin,omitempty"`
	Stdout    bool   `json:"stdout,omitempty"`
	Stderr    bool   `json:"stderr,omitempty"`
	// FromStart requests what the container has written before its first client, as far as it is kept. Only the output of containers with
	// standard input or a terminal is kept.
	FromStart bool `json:"fromStart,omitempty"`
}

// Size is the size of a terminal in characters.
type Size struct {
	Width  uint16 `json:"width"`
	Height uint16 `json:"height"`
}

// reply is the response to a [Request].
type reply struct {
	Error *Error `json:"error,omitempty"`
	// Incomplete is true if not all output from the start of the container is kept.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Reason is why a request is rejected.
type Reason string

// The reasons.
const (
	// NotFound: there is no such container, or it has exited.
	NotFound Reason = "NotFound"
	// NoStdin: the container has no standard input, or it was closed.
	NoStdin Reason = "NoStdin"
	// TooMany: too many clients are attached.
	TooMany Reason = "TooMany"
)

// Error is why a request is rejected.
type Error struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// frame returns a frame in one piece.
func frame(k kind, payload []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(payload))
	b[0] = byte(k)
	binary.BigEndian.PutUint32(b[1:], uint32(len(payload)))
	return append(b, payload...)
}

func jsonFrame(k kind, v any) ([]byte, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return frame(k, payload), nil
}

// readFrame reads a frame. The payload is valid until buf is used again. buf has a capacity of maxPayload. The error is [io.EOF] only
// between frames.
func readFrame(r io.Reader, buf []byte) (kind, []byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > maxPayload {
		return 0, nil, fmt.Errorf("frame of %d bytes exceeds %d", size, maxPayload)
	}
	payload := buf[:size]
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("incomplete frame: %w", io.ErrUnexpectedEOF)
	}
	return kind(header[0]), payload, nil
}
