package event

import (
	"context"
	"log/slog"
	"slices"
	"sort"
	"sync"

	"github.com/podstead/podstead/api"
)

// seqRange is the distance between the first Seqs of two runs of the daemon. No run emits that many events. A Seq is therefore never
// reused, although the journal does not have all events of a run.
const seqRange = 1_000_000_000

// Ring keeps the newest events in memory. Any number of followers can read them. A follower that is slower than the events by more than
// the size of the ring misses some, and learns how many; it never blocks others. Ring is safe for concurrent use.
//
// The wall clock may be set while the host runs, for example when a host without a battery-backed clock gets the time. The methods return
// the events of the current boot with the times that the clock would have shown.
type Ring struct {
	clock    Clock // nil: times are not corrected
	mu       sync.Mutex
	events   []Event // a ring buffer once it is full
	next     int     // the index for the next event
	size     int
	dropped  uint64        // how many events were overwritten
	restored uint64        // the Seq before the first event of this run
	seq      uint64        // of the newest event
	more     chan struct{} // closed by the next event; nil: no follower waits
}

// NewRing returns a ring for the newest size events.
func NewRing(size int) *Ring {
	return &Ring{size: size}
}

// Restore adds the events of earlier runs, ordered by Seq, to an empty ring. The Seqs of this run start after theirs.
func (r *Ring) Restore(events []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(events) == 0 {
		return
	}
	newest := events[len(events)-1].Seq
	r.restored = (newest/seqRange + 1) * seqRange
	r.seq = r.restored
	for _, e := range events[max(0, len(events)-r.size):] {
		r.keep(e)
	}
}

// Restored returns the Seq that the events of this run are greater than. Events up to it were emitted before a restart of the daemon. It
// returns 0 if there are none.
func (r *Ring) Restored() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restored
}

// Newest returns the Seq of the newest event.
func (r *Ring) Newest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// keep adds an event to the buffer. r.mu must be held.
func (r *Ring) keep(e Event) {
	if len(r.events) < r.size {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % r.size
	r.dropped++
}

// at returns the n-th event, from 0 for the oldest. r.mu must be held.
func (r *Ring) at(n int) *Event { return &r.events[(r.next+n)%len(r.events)] }

// after returns the index of the first event after seq. r.mu must be held.
func (r *Ring) after(seq uint64) int {
	return sort.Search(len(r.events), func(n int) bool { return r.at(n).Seq > seq })
}

// find returns the event with a Seq, if it is in the ring.
func (r *Ring) find(seq uint64) (Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.after(seq); n > 0 && r.at(n-1).Seq == seq {
		return *r.at(n - 1), true
	}
	return Event{}, false
}

// Add assigns the next Seq to an event, adds it, wakes the followers, and returns the Seq.
func (r *Ring) Add(e Event) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	e.Seq = r.seq
	r.stamp(&e)
	r.keep(e)
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
	return e.Seq
}

// Since returns the events after seq, oldest first, and how many of those have left the ring. A seq that was not assigned yet, for example
// by a supervisor whose journal was lost, counts as 0.
func (r *Ring) Since(seq uint64) (events []Event, missed uint64) {
	return r.AppendSince([]Event{}, seq)
}

// AppendSince is [Ring.Since], but appends the events to a slice.
func (r *Ring) AppendSince(to []Event, seq uint64) (events []Event, missed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since(to, seq)
}

func (r *Ring) since(to []Event, seq uint64) (events []Event, missed uint64) {
	if seq > r.seq {
		seq = 0
	}
	first := r.after(seq)
	if first == 0 && r.dropped > 0 { // the Seqs of earlier runs have gaps: at most the overwritten events were missed
		missed = min(r.at(0).Seq-1-seq, r.dropped)
	}
	events = slices.Grow(to, len(r.events)-first)
	for n := first; n < len(r.events); n++ {
		events = append(events, *r.at(n))
	}
	r.Correct(events[len(to):])
	return events, missed
}

// Follow is [Ring.Since], but waits until there is at least one event or ctx ends.
func (r *Ring) Follow(ctx context.Context, seq uint64) (events []Event, missed uint64, err error) {
	for {
		r.mu.Lock()
		events, missed = r.since(nil, seq)
		if len(events) == 0 && r.more == nil {
			r.more = make(chan struct{})
		}
		more := r.more
		r.mu.Unlock()
		if len(events) > 0 {
			return events, missed, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// Log writes every event of this run to the log until ctx ends, and then the remaining ones.
func (r *Ring) Log(ctx context.Context, log *slog.Logger) {
	missed := func(n uint64) {
		log.LogAttrs(ctx, slog.LevelWarn, "events were dropped before they could be logged", slog.Uint64("missed", n))
	}
	r.Each(ctx, missed, func(e *Event) {
		level := slog.LevelInfo
		if e.Level == api.EventWarning {
			level = slog.LevelWarn
		}
		log.LogAttrs(ctx, level, e.Message, //nolint:sloglint // the table of events holds the constants
			slog.String("pod", e.Pod), slog.String("container", e.Container), slog.Int("attempt", e.Attempt),
			slog.String("reason", e.Reason), slog.Uint64("seq", e.Seq), slog.Uint64("cause", e.Cause))
	})
}

// Each calls a function for every event of this run until ctx ends, and then for the remaining ones. It calls missed for events that left
// the ring before.
func (r *Ring) Each(ctx context.Context, missed func(uint64), call func(*Event)) {
	for seq := uint64(0); ; {
		events, n, err := r.Follow(ctx, seq)
		if err != nil {
			events, n = r.Since(seq)
		}
		if n > 0 {
			missed(n)
		}
		restored := r.Restored()
		for i := range events {
			if seq = events[i].Seq; seq > restored { // otherwise an earlier run had it
				call(&events[i])
			}
		}
		if err != nil {
			return
		}
	}
}
