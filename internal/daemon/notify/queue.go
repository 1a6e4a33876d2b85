package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// maxPending is the maximum number of events that wait for one receiver.
	maxPending = 256
	// maxAge is the time after which an event that was not sent is dropped. It counts the uptime of the host since the event, or since the
	// last boot: the wall clock of a host without a battery-backed clock may show anything.
	maxAge = 24 * time.Hour
)

// Format is that of the file of a [State].
var Format = statefile.Format{Version: 1}

// State is what is known of one notifier. It outlives the daemon and the host.
type State struct {
	Seq      uint64    `json:"seq"`                // of the newest event that was compared with the filter
	Pending  []Pending `json:"pending,omitempty"`  // oldest first
	Attempts int       `json:"attempts,omitempty"` // failed ones for the oldest pending event

	Sent        uint64    `json:"sent,omitempty"`
	Dropped     uint64    `json:"dropped,omitempty"` // events that were too old or too many
	Missed      uint64    `json:"missed,omitempty"`  // events that left the memory of the daemon before they were compared with the filter
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	LastError   string    `json:"lastError,omitempty"` // of the last failed attempt
	LastFailure time.Time `json:"lastFailure,omitzero"`
}

// Pending is an event that was not sent yet.
type Pending struct {
	ID    string        `json:"id" format:"key"`
	Boot  string        `json:"boot"`  // in which the event was queued or taken over
	Mono  time.Duration `json:"mono"`  // when
	Event event.Event   `json:"event"` // as it was emitted
}

// add appends an event.
func (s *State) add(e *event.Event, now lifecycle.Instant) {
	s.Pending = append(s.Pending, Pending{ID: eventID(e), Boot: now.Boot, Mono: now.Mono, Event: *e})
}

// drop removes the oldest events that are too many or too old, and reports whether there were some.
func (s *State) drop(now lifecycle.Instant) bool {
	n := max(0, len(s.Pending)-maxPending)
	for n < len(s.Pending) && now.Mono-s.Pending[n].Mono >= maxAge {
		n++
	}
	if n == 0 {
		return false
	}
	s.Pending, s.Attempts = append([]Pending(nil), s.Pending[n:]...), 0
	s.Dropped += uint64(n)
	return true
}

// takeOver counts the age of events of earlier boots from the start of this boot.
func (s *State) takeOver(now lifecycle.Instant) {
	for i := range s.Pending {
		if p := &s.Pending[i]; p.Boot != now.Boot {
			p.Boot, p.Mono = now.Boot, 0
		}
	}
}

// eventID returns an ID that an event keeps when it is sent again.
func eventID(e *event.Event) string {
	return fmt.Sprintf("%.8s-%d-%d", e.Boot, e.Seq, e.Mono.Microseconds())
}

// Load reads the state of a notifier. A file that does not exist is an error that matches [fs.ErrNotExist].
func Load(dir, name string) (State, error) {
	s, _, err := load(dir, name)
	return s, err
}

func load(dir, name string) (s State, unknown statefile.Unknown, err error) {
	unknown, err = Format.Read(path(dir, name), &s)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("read state of notifier %s: %w", name, err)
	}
	return s, unknown, err
}

func save(dir, name string, s *State, unknown statefile.Unknown) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return Format.Write(path(dir, name), s, unknown)
}

func path(dir, name string) string { return filepath.Join(dir, name+".json") }
