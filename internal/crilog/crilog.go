// Package crilog writes and reads the logs of containers in the format of the Kubernetes CRI: one line of the file is
//
//	2026-01-02T03:04:05.123456789Z stdout F text of the line
//
// with the time at which the line was read from the container, the stream it came from, and F for a full line or P
// for a part that the next entry of the same stream continues. It owns the format, the rotation and nothing else:
// whose log it is, and where it lies, is its caller's business.
//
// A log is the file at its path and, once rotated, the older files beside it: path.1 is the youngest of them. Entries
// are never divided between two files.
package crilog

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Stream says which of a container's two outputs an entry came from.
type Stream string

// The streams of a container, in the words of the CRI.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

const (
	// maxPart is the length of the longest text in one entry, in bytes; a longer line is divided. It is containerd's
	// and the kubelet's value.
	maxPart = 16 << 10

	// timeFormat is RFC 3339 in UTC with a fixed number of digits, so that entries sort as text.
	timeFormat = "2006-01-02T15:04:05.000000000Z"
)

// Entry is one line of a log file.
type Entry struct {
	Time   time.Time
	Stream Stream
	// Partial says that the container's line goes on in the next entry of this stream.
	Partial bool
	// Text is the line without its newline. It is valid until the next entry is read.
	Text []byte
}

var errFormat = errors.New("not in CRI log format")

// Parse reads one line of a log file, without its newline. The entry's text points into line. It takes what every
// writer of the format writes: times with any zone and precision, and further tags after the first, divided by colons.
func Parse(line []byte) (Entry, error) {
	stamp, rest, ok1 := bytes.Cut(line, []byte{' '})
	stream, rest, ok2 := bytes.Cut(rest, []byte{' '})
	tags, text, ok3 := bytes.Cut(rest, []byte{' '})
	if !ok1 || !ok2 || !ok3 {
		// An empty line may have lost the space after its tags to an editor.
		if !ok1 || !ok2 || len(tags) != 1 {
			return Entry{}, errFormat
		}
	}
	t, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return Entry{}, fmt.Errorf("%w: time: %w", errFormat, err)
	}
	e := Entry{Time: t, Text: text}
	switch string(stream) {
	case string(Stdout):
		e.Stream = Stdout
	case string(Stderr):
		e.Stream = Stderr
	default:
		return Entry{}, fmt.Errorf("%w: stream %.20q", errFormat, stream)
	}
	tag, _, _ := bytes.Cut(tags, []byte{':'})
	switch string(tag) {
	case "F":
	case "P":
		e.Partial = true
	default:
		return Entry{}, fmt.Errorf("%w: tag %.20q", errFormat, tag)
	}
	return e, nil
}

// appendEntry appends one line of the file to b. The stamp is formatted by the caller, which has one for many lines.
func appendEntry(b, stamp []byte, s Stream, partial bool, text []byte) []byte {
	b = append(b, stamp...)
	b = append(b, ' ')
	b = append(b, s...)
	if partial {
		b = append(b, " P "...)
	} else {
		b = append(b, " F "...)
	}
	b = append(b, text...)
	return append(b, '\n')
}
