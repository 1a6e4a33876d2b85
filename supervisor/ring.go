package supervisor

import (
	"context"
	"log/slog"
	"sync"
)

// Ring keeps the newest events and lets anyone follow them. A follower that falls behind by more than the ring holds
// misses events and is told so; it never holds anybody up. Safe for concurrent use.
type Ring struct {
	mu     sync.Mutex
	events []Event // a circle once it is full
	seq    uint64  // of the newest event
	more   chan struct{}
}

// NewRing returns a ring that keeps the newest size events.
func NewRing(size int) *Ring {
	return &Ring{events: make([]Event, 0, size), more: make(chan struct{})}
}

// add numbers the event, keeps it, wakes the followers, and returns the number.
func (r *Ring) add(e Event) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	e.Seq = r.seq
	if len(r.events) < cap(r.events) {
		r.events = append(r.events, e)
	} else {
		r.events[(r.seq-1)%uint64(cap(r.events))] = e
	}
	close(r.more)
	r.more = make(chan struct{})
	return e.Seq
}

// Since returns the events with a number greater than seq, oldest first, and how many of those are no longer kept. A
// seq from the future, as of a supervisor before this one, counts as 0.
func (r *Ring) Since(seq uint64) (events []Event, missed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since(seq)
}

func (r *Ring) since(seq uint64) ([]Event, uint64) {
	if seq > r.seq {
		seq = 0
	}
	oldest := r.seq - uint64(len(r.events)) // the number before the oldest event's
	missed := uint64(0)
	if seq < oldest {
		missed, seq = oldest-seq, oldest
	}
	events := make([]Event, 0, r.seq-seq)
	for n := seq; n < r.seq; n++ {
		events = append(events, r.events[n%uint64(cap(r.events))])
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

// log writes every event to the log until the context ends, and those that are there then.
func (r *Ring) log(ctx context.Context, log *slog.Logger) {
	for seq := uint64(0); ; {
		events, missed, err := r.Follow(ctx, seq)
		if err != nil {
			events, missed = r.Since(seq)
		}
		if missed > 0 {
			log.LogAttrs(ctx, slog.LevelWarn, "events came faster than they could be logged", slog.Uint64("missed", missed))
		}
		for _, e := range events {
			seq = e.Seq
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
