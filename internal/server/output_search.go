package server

import (
	"bytes"
	"time"

	"github.com/podstead/podstead/api"
)

// maxSearchText bounds the text of a search, in bytes.
const maxSearchText = 1 << 10

// The bounds of one search: the lines that it reads, in bytes, and its time. Only tests change them.
var (
	maxSearchBytes int64 = 256 << 20
	maxSearchTime        = 20 * time.Second
)

// search selects lines by a text. It is used by one goroutine at a time, unless it has no bounds. Nil selects all lines.
type search struct {
	text    []byte // in lower case
	bounded bool
	begun   time.Time
	bytes   int64
	stopped bool
}

func newSearch(text string, bounded bool) *search {
	return &search{text: bytes.ToLower([]byte(text)), bounded: bounded, begun: time.Now()}
}

func (s *search) matches(line []byte) bool {
	return s == nil || bytes.Contains(bytes.ToLower(line), s.text)
}

// isStopped reports whether a bound was reached.
func (s *search) isStopped() bool { return s != nil && s.stopped }

// spend counts a line before it is searched. If a bound is reached, it stops the search and returns how far it came, without the place.
func (s *search) spend(line int) *api.SearchStopped {
	if s == nil || !s.bounded {
		return nil
	}
	took := time.Since(s.begun)
	if s.bytes < maxSearchBytes && took < maxSearchTime {
		s.bytes += int64(line)
		return nil
	}
	s.stopped = true
	return &api.SearchStopped{Bytes: s.bytes, Seconds: took.Seconds()}
}
