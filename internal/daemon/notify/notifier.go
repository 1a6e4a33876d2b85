package notify

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/supervisor/event"
)

const (
	// firstDelay is the time between the first failed attempt and the next one. Each further failure doubles it.
	firstDelay = time.Second
	// maxDelay is the maximum of that.
	maxDelay = 5 * time.Minute
	// overtakeAfter is the number of failed attempts for an event, in about half a minute, after which later events are sent before it.
	overtakeAfter = 5
)

// notifier sends the events that match a filter to one receiver, in their order except for those that the
// receiver refuses. One goroutine adds events, another one sends them.
type notifier struct {
	o      *Options
	c      config.Notifier
	filter *filter
	more   chan struct{} // receives a value when there may be a pending event

	mu      sync.Mutex // of the fields below, and of the file
	state   State
	unknown statefile.Unknown
	frozen  bool   // the file was written by a later version, and is left alone
	saved   uint64 // state.Seq in the file
	broken  bool   // the file could not be written
}

// load reads the state. A new notifier begins after the event newest. First is set for the first start in this process: the Seqs in the
// file are of an earlier one then.
func (n *notifier) load(ctx context.Context, first bool, newest uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var err error
	n.state, n.unknown, err = load(n.o.Dir, n.c.Name)
	switch {
	case err == nil:
		if first {
			n.state.Seq = min(n.state.Seq, n.o.Events.Restored())
		}
		n.saved = n.state.Seq
		n.state.takeOver(n.o.Now())
		return
	case !errors.Is(err, fs.ErrNotExist):
		n.o.Log.LogAttrs(ctx, slog.LevelWarn, "state of notifier is not used", slog.String("notifier", n.c.Name), slog.Any("error", err))
	}
	n.frozen = errors.Is(err, statefile.ErrNewer)
	n.state = State{Seq: newest}
	n.save()
}

// follow adds the events that match until ctx ends.
func (n *notifier) follow(ctx context.Context) {
	for seq := n.state.Seq; ; { // sendAll does not change it
		events, missed, err := n.o.Events.Follow(ctx, seq)
		if err != nil {
			return
		}
		seq = events[len(events)-1].Seq
		n.accept(events, missed)
	}
}

// accept adds the events that match, and saves them before they are sent.
func (n *notifier) accept(events []event.Event, missed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.o.Now()
	added := missed > 0
	for i := range events {
		if n.filter.match(&events[i]) {
			n.state.add(&events[i], now)
			added = true
		}
	}
	n.state.Seq = events[len(events)-1].Seq
	n.state.Missed += missed
	if !added {
		return
	}
	n.state.drop(now)
	n.save()
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// sendAll sends pending events until ctx ends. After a failed attempt it waits for the back-off. A restart of the daemon ends the wait, but
// not the back-off.
func (n *notifier) sendAll(ctx context.Context) {
	for {
		oldest, ok := n.pending(0)
		if !ok {
			select {
			case <-n.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		again, attempted := n.attempt(ctx, &oldest)
		if !attempted || again > 0 && !n.pause(ctx, again) {
			return
		}
	}
}

// attempt sends an event once, and returns the time until the next attempt; 0: it was sent. It returns false if ctx has ended.
func (n *notifier) attempt(ctx context.Context, p *Pending) (again time.Duration, attempted bool) {
	m := NewMessage(n.c.Name, p.ID, &p.Event)
	err := n.o.send(ctx, &n.c, &m)
	if ctx.Err() != nil && err != nil {
		return 0, false // canceled: no failure of the receiver
	}
	return n.result(ctx, p.ID, err), true
}

// pause waits before the next attempt for the oldest event. If that has failed often, the events behind it are sent meanwhile: the receiver
// may refuse only this one, for example because it is too large. An event behind it that fails too shows that the receiver is down; then
// all wait, in their order. It returns false when ctx has ended.
func (n *notifier) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	overtake := n.failures() >= overtakeAfter
	for {
		var more <-chan struct{}
		if overtake {
			more = n.more
			if behind, ok := n.pending(1); ok {
				again, attempted := n.attempt(ctx, &behind)
				if !attempted {
					return false
				}
				overtake = again == 0
				continue
			}
		}
		select {
		case <-more:
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// pending returns the pending event with an index, 0 for the oldest, that is not too old.
func (n *notifier) pending(index int) (Pending, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state.drop(n.o.Now()) {
		n.save()
	}
	if len(n.state.Pending) <= index {
		return Pending{}, false
	}
	return n.state.Pending[index], true
}

// failures returns the number of failed attempts for the oldest event.
func (n *notifier) failures() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.Attempts
}

// result records the result of an attempt, and returns the time until the next one. Only attempts for the oldest event are counted.
func (n *notifier) result(ctx context.Context, id string, err error) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, wall := slog.String("notifier", n.c.Name), n.o.Now().Wall
	defer n.save()
	index := slices.IndexFunc(n.state.Pending, func(p Pending) bool { return p.ID == id }) // it may have been dropped meanwhile
	if err != nil {
		n.state.LastError, n.state.LastFailure = err.Error(), wall
		if index > 0 {
			return delay(n.state.Attempts)
		}
		if n.state.Attempts++; n.state.Attempts == 1 {
			n.o.Log.LogAttrs(ctx, slog.LevelWarn, "event could not be sent, retrying", name, slog.Any("error", err))
		}
		return delay(n.state.Attempts)
	}
	n.state.LastSuccess = wall
	n.state.Sent++
	if index >= 0 {
		n.state.Pending = slices.Delete(n.state.Pending, index, index+1)
	}
	if index > 0 {
		return 0
	}
	if n.state.Attempts > 0 {
		n.o.Log.LogAttrs(ctx, slog.LevelInfo, "event was sent", name, slog.Int("failures", n.state.Attempts))
	}
	n.state.Attempts = 0
	return 0
}

// delay returns the back-off after a number of failures.
func delay(failures int) time.Duration {
	d := firstDelay
	for ; failures > 1 && d < maxDelay; failures-- {
		d *= 2
	}
	return min(d, maxDelay)
}

// leave saves the position at the end, so that a changed filter is not applied to events before it.
func (n *notifier) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.saved != n.state.Seq {
		n.save()
	}
}

// save writes the state. After an error the state in memory is used, and written with the next change. n.mu must be held.
func (n *notifier) save() {
	if n.frozen {
		return
	}
	err := save(n.o.Dir, n.c.Name, &n.state, n.unknown)
	if err != nil && !n.broken {
		n.o.Log.Warn("state of notifier cannot be saved: a restart of the daemon may lose or repeat events",
			slog.String("notifier", n.c.Name), slog.Any("error", err))
	}
	if n.broken = err != nil; !n.broken {
		n.saved = n.state.Seq
	}
}
