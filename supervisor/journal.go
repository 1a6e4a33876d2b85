package supervisor

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Journal keeps the events of pods over restarts of the supervisor and of the machine, as many as it has room for: those of
// the kinds that the table says, and what led to them. It is for people. Nothing is decided by it, so that a crash may lose
// the newest. Append and Retain are not called concurrently; Read is, with anything. Every call may block for as long as the
// disk does.
type Journal interface {
	// Load returns what is kept of all pods, in the order of their numbers. What cannot be read is left out, and said by
	// the error beside the rest.
	Load() ([]Event, error)
	// Read returns what is kept of the pods that had a name, in the order of their numbers; nothing is no error.
	Read(pod string) ([]Event, error)
	// Append adds events, of any pods and in the order of their numbers. They need not be on the disk when it returns.
	// After an error some of them may be kept; they are handed over again.
	Append(events []Event) error
	// Retain is told which pods there are. Of the others, only the newest few need be kept.
	Retain(pods []string) error
}

const (
	// maxCauses bounds how many events that are not kept themselves are kept with one that they led to: the newest say it
	// all, since what fails a hundred times does so in the same way.
	maxCauses = 8
	// journalPause is the time before a journal that failed is tried again.
	journalPause = time.Minute
)

// recorder hands events to the journal, in a goroutine of its own: no loop ever waits for that.
type recorder struct {
	ring    *Ring
	journal Journal
	now     Clock
	pods    func() []string // those that there are

	seq     uint64 // of the newest event that was looked at
	written map[uint64]bool
	failed  bool // the newest attempt
}

// run keeps events until the context ends, and those that are there then. An event that falls out of the ring while the
// journal hangs or fails is lost to it.
func (r *recorder) run(ctx context.Context) {
	for {
		events, _, err := r.ring.Follow(ctx, r.seq)
		if err != nil {
			events, _ = r.ring.Since(r.seq)
		}
		kept := r.keep(events)
		if !kept && err == nil {
			select {
			case <-time.After(journalPause):
			case <-ctx.Done():
				return // what it would not take now is lost
			}
		}
		if err != nil {
			return
		}
	}
}

// keep hands over those events that are to be kept, with what led to them, and reports whether they are.
func (r *recorder) keep(events []Event) bool {
	born := r.ring.Born()
	r.seq = max(r.seq, born) // what earlier lives have told, they have kept
	events = slices.DeleteFunc(events, func(e Event) bool { return e.Seq <= born })
	if len(events) == 0 {
		return true
	}
	var batch []Event
	gone := false
	marked := map[uint64]bool{}
	for _, e := range events {
		if !table[e.Kind].Kept {
			continue
		}
		for _, c := range r.chain(e, born, marked) {
			marked[c.Seq] = true
			batch = append(batch, c)
		}
		gone = gone || e.Kind == PodRemoved || e.Kind == PodRejected // either leaves a name without a pod
	}
	if len(batch) > 0 {
		if !r.hand(batch, gone) {
			return false
		}
		r.written = marked
	}
	r.seq = events[len(events)-1].Seq
	return true
}

// chain is an event behind those that led to it and are not kept yet, of this life.
func (r *recorder) chain(e Event, born uint64, marked map[uint64]bool) []Event {
	chain := []Event{e}
	for len(chain) <= maxCauses {
		cause, known := r.ring.find(chain[len(chain)-1].Cause)
		if !known || cause.Seq <= born || table[cause.Kind].Kept || marked[cause.Seq] || r.written[cause.Seq] {
			break
		}
		chain = append(chain, cause)
	}
	slices.Reverse(chain)
	return chain
}

// hand writes a batch and reports whether that went well. That it did not is told once.
func (r *recorder) hand(batch []Event, gone bool) bool {
	err := r.journal.Append(batch)
	if err == nil && gone {
		err = r.journal.Retain(r.pods())
	}
	if err != nil && !r.failed {
		r.ring.add(JournalNotDurable.event(r.now(), "", fields{"error": err.Error()}))
	}
	r.failed = err != nil
	return err == nil
}

// restoreEvents takes up the events of earlier lives, and what of it each pod's next event follows from.
func (s *Supervisor) restoreEvents(ctx context.Context) {
	if s.shared.journal == nil {
		return
	}
	events, err := s.shared.journal.Load()
	if err != nil {
		s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not take up all events of before", slog.Any("error", err))
	}
	s.shared.ring.restore(events)
	for _, e := range events {
		if e.UID == "" {
			continue
		}
		if s.shared.before[e.UID] == nil {
			s.shared.before[e.UID] = map[string]told{}
		}
		s.shared.before[e.UID][e.Container] = told{e.Seq, e.Kind}
	}
}

// names are those of the pods that there are.
func (s *Supervisor) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.pods {
		names = append(names, name)
	}
	return names
}

// History returns the events of the pods that had a name, in the order of their numbers: those that are on disk, and the
// newest. It waits for the disk until the context ends. What cannot be read is left out, and said by the error beside the rest.
func (s *Supervisor) History(ctx context.Context, pod string) ([]Event, error) {
	recent, _ := s.shared.ring.Since(0)
	recent = slices.DeleteFunc(recent, func(e Event) bool { return e.Pod != pod })
	if s.shared.journal == nil {
		return recent, nil
	}
	type read struct {
		events []Event
		err    error
	}
	done := make(chan read, 1)
	go func() {
		events, err := s.shared.journal.Read(pod)
		done <- read{events, err}
	}()
	select {
	case r := <-done:
		return merge(r.events, recent), r.err
	case <-ctx.Done():
		return recent, ctx.Err()
	}
}

// merge joins two lists in the order of their numbers, each number once.
func merge(a, b []Event) []Event {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, bySeq)
	return slices.CompactFunc(all, func(x, y Event) bool { return x.Seq == y.Seq })
}
