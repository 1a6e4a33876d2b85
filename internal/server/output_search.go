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

// spend counts a line before it is searched. If a bound is reached, it stops the search and returns how far it came, without the place. A
// search that continues at the time of that line begins with its own bounds, so it does not stop before it has searched a later one.
func (s *search) spend(line int, at time.Time) *api.SearchStopped {
	if s == nil || !s.bounded {
		return nil
	}
	if s.begun.IsZero() {
		s.begun, s.first = time.Now(), at
	}
	took := time.Since(s.begun) - s.waited
	if s.bytes < maxSearchBytes && took < maxSearchTime || !at.After(s.first) {
		s.bytes += int64(line)
		return nil
	}
	s.stopped = true
	return &api.SearchStopped{Bytes: s.bytes, Seconds: took.Seconds()}
}
