package server

import (
	"bytes"
	"time"

	"github.com/podstead/podstead/api"
)

// maxSearchText bounds the text of a search, in bytes.
const maxSearchText = 1 << 10

// The bounds of the search in one container: the lines that it reads, in bytes, and its time. Only tests change them.
var (
	maxSearchBytes int64 = 256 << 20
	maxSearchTime        = 20 * time.Second
)

// backFactor multiplies the bounds at lines that are not later than the first one: the clock of the host was set back after it.
const backFactor = 4

// search selects the lines of one container by a text. It is used by one goroutine. Nil selects all lines.
type search struct {
	text    []byte // in lower case
	bounded bool
	begun   time.Time     // when the first line was searched
	first   time.Time     // of the first line
	waited  time.Duration // for the client, since begun
	bytes   int64
	stopped bool
}

// newSearch returns the search for a text. No text: nil.
func newSearch(text string, bounded bool) *search {
	if text == "" {
		return nil
	}
	return &search{text: bytes.ToLower([]byte(text)), bounded: bounded}
}

func (s *search) matches(line []byte) bool {
	return s == nil || bytes.Contains(bytes.ToLower(line), s.text)
}

// isStopped reports whether a bound was reached.
func (s *search) isStopped() bool { return s != nil && s.stopped }

// wait counts time in which the client did not read. It is not a part of the search.
func (s *search) wait(d time.Duration) {
	if s != nil && !s.begun.IsZero() {
		s.waited += d
	}
}

// spend counts a line before it is searched. If a bound is reached, it stops the search and returns how far it came, without the container.
// A search that continues at the time of a line has its own bounds, and comes further only if that line is later than the first one. At
// other lines the search has [backFactor] times the bounds, and cannot be continued.
func (s *search) spend(line int, at time.Time) *api.SearchStopped {
	if s == nil || !s.bounded {
		return nil
	}
	if s.begun.IsZero() {
		s.begun, s.first, s.bytes = time.Now(), at, int64(line)
		return nil
	}
	took, size, limit, from := time.Since(s.begun)-s.waited, maxSearchBytes, maxSearchTime, at
	if !at.After(s.first) {
		size, limit, from = backFactor*size, backFactor*limit, time.Time{}
	}
	if s.bytes < size && took < limit {
		s.bytes += int64(line)
		return nil
	}
	s.stopped = true
	return &api.SearchStopped{From: from, Bytes: s.bytes, Seconds: took.Seconds()}
}
