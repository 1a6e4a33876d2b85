package api

import (
	"fmt"
	"time"
)

// Line is a line of a container's output.
type Line struct {
	Container string    `json:"container"`
	Stream    string    `json:"stream"` // stdout or stderr
	Time      time.Time `json:"time"`   // of the first byte
	Attempt   int       `json:"attempt"`
	Line      string    `json:"line"`
	// Raw is the line if it is not valid UTF-8, which JSON cannot represent.
	Raw []byte `json:"raw,omitempty"`
	// Partial means that the line has no newline: the output ends, or the next line of the stream is the rest of a line of more than 1 MiB.
	Partial bool `json:"partial,omitempty"`
}

// Position is a position in the output of a container: all runs before Attempt, and the first Lines of Attempt, are read. If the start
// of the log was rotated away since, the times of the first and the last line that was read determine the position.
type Position struct {
	Attempt int       `json:"attempt"`
	Lines   int       `json:"lines"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Positions are positions in the output of a pod, by container.
type Positions map[string]Position

// Advance marks a line as read.
func (p Positions) Advance(l Line) {
	at := p[l.Container]
	if at.Attempt != l.Attempt || at.Lines == 0 {
		at = Position{Attempt: l.Attempt, First: l.Time}
	}
	at.Lines++
	at.Last = l.Time
	p[l.Container] = at
}

// OutputRecord is a value of a stream of output. A record without a stream has no line, only a start.
type OutputRecord struct {
	Line
	// Start, if set, is the position before the line. It is sent for the first record of a container that is followed, wherever lines
	// are left out, and at intervals while no line matches, so that a client can continue after the last line that was read for it.
	Start *Position `json:"start,omitempty"`
	// Skipped, if set, is what precedes the next line of a run that is followed, but was removed before it could be sent: the client reads
	// more slowly than the container writes. The record has no stream.
	Skipped *Skipped `json:"skipped,omitempty"`
	// SearchStopped, if set, is where the search in a container has reached a bound. It is the last record of the container: what follows
	// is not searched. The record has no stream.
	SearchStopped *SearchStopped `json:"searchStopped,omitempty"`
}

// Skipped is a part of a log that was removed before it was read.
type Skipped struct {
	Lines int64 `json:"lines"`           // -1: unknown, the log is written by an earlier version
	Bytes int64 `json:"bytes,omitempty"` // in the files of the log; 0: unknown
}

// String returns such as "12 lines (345 bytes)", or "lines" for an unknown number.
func (s Skipped) String() string {
	switch {
	case s.Lines < 0:
		return "lines"
	case s.Bytes <= 0:
		return fmt.Sprintf("%d lines", s.Lines)
	}
	return fmt.Sprintf("%d lines (%d bytes)", s.Lines, s.Bytes)
}

// SearchStopped is how far the search in a container has come when it reached a bound.
type SearchStopped struct {
	Container string `json:"container"`
	// From is the time of the first line that is not searched. It is not set if that line is not later than the first one that was
	// searched, because the clock of the host was set back: a search from there would not come further.
	From    time.Time `json:"from,omitzero"`
	Bytes   int64     `json:"bytes"`   // that were searched
	Seconds float64   `json:"seconds"` // that the search took, without those in which the client did not read
}

// OutputRuns selects runs of a container. The newest run is followed by all later ones if the request follows. As in kubectl, the previous
// run is the one in lastState. For a container in back-off that is the newest run.
type OutputRuns string

// The selections of runs.
const (
	AllRuns     OutputRuns = ""
	NewestRun   OutputRuns = "newest"
	PreviousRun OutputRuns = "previous"
)
