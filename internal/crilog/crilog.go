// Package crilog writes and reads container logs in the CRI format. A line of the file is
//
//	2026-01-02T03:04:05.123456789Z stdout F text of the line
//
// with the time at which the line was read from the container, its stream, and F for a full line or P for a part that the next
// entry of the same stream continues. At the end of a stream, P is a line without a newline. The package owns the format and the rotation.
// The caller determines the path. A [Feed] writes it, and continues after its process was killed.
//
// A log is the file at its path and, after rotation, the older files path.1 (the newest of them), path.2 and so on. Entries are
// never split between two files. A rotated file may be compressed, under the same name. The first entry of each file but the first has two
// more tags, which tell a reader how much it has missed: how many lines and bytes of the log precede it, as in
//
//	2026-01-02T03:04:05.123456789Z stdout F:lines=81234:bytes=10485700 text of the line
package crilog

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Stream is the output stream of an entry.
type Stream string

// The streams of a container, as named by the CRI.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// index is the index of the stream where a value is kept for each of them.
func (s Stream) index() int {
	if s == Stderr {
		return 1
	}
	return 0
}

const (
	// maxPart is the maximum length of the text of an entry, in bytes. Longer lines are split. containerd and the kubelet use the
	// same value.
	maxPart = 16 << 10

	// timeFormat is RFC 3339 in UTC with a fixed number of digits, so that entries sort lexically.
	timeFormat = "2006-01-02T15:04:05.000000000Z"
)

// Entry is one line of a log file.
type Entry struct {
	Time   time.Time
	Stream Stream
	// Partial is true if the text has no newline: the next entry of this stream continues the line, or the output ends.
	Partial bool
	// Text is the line without its newline. It is valid until the next entry is read.
	Text []byte

	// Number is the number of the line in its log, from 1. It is set by [Read]. If Numbered is set, it counts all lines since the start of
	// the log, with those in files that were removed, otherwise those since the oldest file.
	Number   int64
	Numbered bool
	// Skipped is set by [Read] for an entry that is not a line: so much of the log was removed before it was read.
	Skipped *Count

	start *Count // the tags of the first entry of a file
}

var errFormat = errors.New("not in CRI log format")

// Parse parses one line of a log file, without its newline. The entry's text refers to line. It accepts every valid entry: times
// with any zone and precision, and further colon-separated tags after the first.
func Parse(line []byte) (Entry, error) {
	stamp, rest, ok1 := bytes.Cut(line, []byte{' '})
	stream, rest, ok2 := bytes.Cut(rest, []byte{' '})
	tags, text, ok3 := bytes.Cut(rest, []byte{' '})
	if !ok1 || !ok2 || !ok3 {
		// An editor may have removed the space after the tags of an empty line.
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
	tag, tags, _ := bytes.Cut(tags, []byte{':'})
	switch string(tag) {
	case "F":
	case "P":
		e.Partial = true
	default:
		return Entry{}, fmt.Errorf("%w: tag %.20q", errFormat, tag)
	}
	e.start = parseStart(tags)
	return e, nil
}

// appendEntry appends one line of the file to b. The caller formats the time stamp, because it uses one for many lines.
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
