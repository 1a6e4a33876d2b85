package crilog

import (
	"bytes"
	"slices"
)

// place is how far a reader has read a log.
type place struct {
	begun bool
	// read is what is read up to now. If numbered is set, it counts from the start of the log.
	read     Count
	numbered bool
	sent     int64 // lines that were sent; more than read if a copy of a file is read again
	lost     bool  // the file after the one read last was removed
	unsure   bool  // read counts from an unknown line

	// header is the start of the newest file without tags. Such a file is the oldest of the log, or of an earlier version of this package.
	header      []byte
	headerCount Count
}

// maxHeader bounds a header, in bytes. It holds a time and the start of a line, which identify a file.
const maxHeader = 256

// begin is called for the first line of a file. It finds which part of the log precedes the file, and sends what was skipped.
func (r *reader) begin(line []byte, e Entry) error {
	p := &r.place
	start := p.read
	unknown := false
	header := line[:min(len(line), maxHeader)]
	switch {
	case e.start != nil:
		start = *e.start
		p.numbered = true
	case bytes.Equal(header, p.header):
		start = p.headerCount // a copy
	default:
		unknown = p.lost
		p.header, p.headerCount = slices.Clone(header), start
	}
	skipped := Count{start.Lines - p.sent, start.Bytes - p.read.Bytes}
	known := p.begun && !p.unsure
	p.begun, p.lost = true, false
	if e.start != nil {
		p.unsure = false
	}
	if unknown {
		skipped = Count{Lines: -1}
	}
	if !known || skipped.Lines == 0 || skipped.Lines < 0 && !unknown {
		if !known || start.Lines < p.sent {
			clear(r.parts)
		}
		if !known {
			p.sent = start.Lines
		}
		p.read = start
		return nil
	}
	if err := r.flush(); err != nil { // the rest of a line was removed
		return err
	}
	p.read = start
	p.sent = max(p.sent, start.Lines)
	if !r.yield(Entry{Time: e.Time, Skipped: &skipped}, nil) {
		return errStopped
	}
	return nil
}
