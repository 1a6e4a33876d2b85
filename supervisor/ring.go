package supervisor

import (
	"context"
	"log/slog"
	"sort"
	"sync"
)

// lifeSpan is how far apart the first numbers of two lives of the supervisor are. A life has fewer events than that, so that
// a number which was lost with a life, since not all are kept on disk, is never given again.
const lifeSpan = 1_000_000_000

// Ring keeps the newest events and lets anyone follow them. A follower that falls behind by more than the ring holds
// misses events and is told so; it never holds anybody up. Safe for concurrent use.
type Ring struct {
	mu     sync.Mutex
	events []Event // a circle once it is full
	next   int     // where the next event goes
	size   int
	gone   uint64 // how many have made room for others
	born   uint64 // the number before the first of this life
	seq    uint64 // of the newest event
	more   chan struct{}
}

// NewRing returns a ring that keeps the newest size events.
func NewRing(size int) *Ring {
	return &Ring{size: size, more: make(chan struct{})}
}

// restore puts the events of earlier lives, in the order of their numbers, into a ring that has none yet. The numbers of
// this life begin behind them.
func (r *Ring) restore(events []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(events) == 0 {
		return
	}
	newest := events[len(events)-1].Seq
	r.born = (newest/lifeSpan + 1) * lifeSpan
	r.seq = r.born
	for _, e := range events[max(0, len(events)-r.size):] {
		r.keep(e)
	}
}

// Born is the number behind which those of this life begin; 0: it knows of no earlier one. A number up to it is of an
// earlier life, and those that follow it may be asked for.
func (r *Ring) Born() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.born
}

// keep puts an event into the circle. r.mu is held.
func (r *Ring) keep(e Event) {
	if len(r.events) < r.size {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % r.size
	r.gone++
}

// at is the n-th event from the oldest on. r.mu is held.
func (r *Ring) at(n int) *Event { return &r.events[(r.next+n)%len(r.events)] }

// after is how many of the events that are kept have a number of seq or less. r.mu is held.
func (r *Ring) after(seq uint64) int {
	return sort.Search(len(r.events), func(n int) bool { return r.at(n).Seq > seq })
}

// find returns the event of a number, if it is kept.
func (r *Ring) find(seq uint64) (Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.after(seq); n > 0 && r.at(n-1).Seq == seq {
		return *r.at(n - 1), true
	}
	return Event{}, false
}

// add numbers the event, keeps it, wakes the followers, and returns the number.
func (r *Ring) add(e Event) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	e.Seq = r.seq
	r.keep(e)
	close(r.more)
	r.more = make(chan struct{})
	return e.Seq
}

// Since returns the events with a number greater than seq, oldest first, and how many of those are no longer kept. A
// seq from the future, as of a supervisor that knew of other ones, counts as 0.
func (r *Ring) Since(seq uint64) (events []Event, missed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since(seq)
}

func (r *Ring) since(seq uint64) (events []Event, missed uint64) {
	if seq > r.seq {
		seq = 0
	}
	first := r.after(seq)
	if first == 0 && r.gone > 0 { // of an earlier life not all numbers were kept: no more than those that made room
		missed = min(r.at(0).Seq-1-seq, r.gone)
	}
	events = make([]Event, 0, len(r.events)-first)
	for n := first; n < len(r.events); n++ {
		events = append(events, *r.at(n))
	}
	return events, missed
}

// Follow is [Ring.Since] that waits until there is at least one event, or the context ends.
func (r *Ring) Follow(ctx context.Context, seq uint64) (events []Event, missed uint64, err error) {
	for {
		r.mu.Lock()
		events, missed = r.since(seq)
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

// log writes every event of this life to the log until the context ends, and those that are there then.
func (r *Ring) log(ctx context.Context, log *slog.Logger) {
	for seq := uint64(0); ; {
		events, missed, err := r.Follow(ctx, seq)
		if err != nil {
			events, missed = r.Since(seq)
		}
		if missed > 0 {
			log.LogAttrs(ctx, slog.LevelWarn, "events came faster than they could be logged", slog.Uint64("missed", missed))
		}
		born := r.Born()
		for _, e := range events {
			if seq = e.Seq; seq <= born {
				continue // an earlier life has logged it
			}
			level := slog.LevelInfo
			if e.Level == Warning {
				level = slog.LevelWarn
			}
			log.LogAttrs(ctx, level, e.Message, //nolint:sloglint // the table of events holds the constants
				slog.String("pod", e.Pod), slog.String("container", e.Container), slog.Int("attempt", e.Attempt),
				slog.String("reason", e.Reason), slog.Uint64("seq", e.Seq), slog.Uint64("cause", e.Cause))
		}
		if err != nil {
			return
		}
	}
}
