package notify

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/internal/format"
	"github.com/podstead/podstead/supervisor/event"
)

const (
	// firstDelay is the time between the first failed attempt and the next one. Each further failure doubles it.
	firstDelay = time.Second
	// maxDelay is the maximum of that.
	maxDelay = 5 * time.Minute
)

// notifier sends the events that match a filter to one receiver, in their order. One goroutine adds events, another one sends them.
type notifier struct {
	o      *Options
	c      config.Notifier
	filter *filter
	more   chan struct{} // receives a value when there may be a pending event

	mu      sync.Mutex // of the fields below, and of the file
	state   State
	unknown format.Unknown
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
	n.frozen = errors.Is(err, format.ErrNewer)
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
		next, ok := n.oldest()
		if !ok {
			select {
			case <-n.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		m := NewMessage(n.c.Name, next.ID, &next.Event)
		err := n.o.send(ctx, &n.c, &m)
		if ctx.Err() != nil && err != nil {
			return // canceled: no failure of the receiver
		}
		delay := n.result(ctx, next.ID, err)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
	}
}

// oldest returns the oldest pending event that is not too old.
func (n *notifier) oldest() (Pending, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state.drop(n.o.Now()) {
		n.save()
	}
	if len(n.state.Pending) == 0 {
		return Pending{}, false
	}
	return n.state.Pending[0], true
}

// result records the result of an attempt, and returns the time until the next one.
func (n *notifier) result(ctx context.Context, id string, err error) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, wall := slog.String("notifier", n.c.Name), n.o.Now().Wall
	defer n.save()
	if err != nil {
		if n.state.Attempts++; n.state.Attempts == 1 {
			n.o.Log.LogAttrs(ctx, slog.LevelWarn, "event could not be sent, retrying", name, slog.Any("error", err))
		}
		n.state.LastError, n.state.LastFailure = err.Error(), wall
		return delay(n.state.Attempts)
	}
	if n.state.Attempts > 0 {
		n.o.Log.LogAttrs(ctx, slog.LevelInfo, "event was sent", name, slog.Int("failures", n.state.Attempts))
	}
	n.state.Attempts, n.state.LastSuccess = 0, wall
	n.state.Sent++
	if len(n.state.Pending) > 0 && n.state.Pending[0].ID == id { // it may have been dropped meanwhile
		n.state.Pending = n.state.Pending[1:]
	}
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
		n.o.Log.Warn("state of notifier cannot be saved: a restart of the daemon may lose or repeat events", slog.String("notifier", n.c.Name), slog.Any("error", err))
	}
	if n.broken = err != nil; !n.broken {
		n.saved = n.state.Seq
	}
}
