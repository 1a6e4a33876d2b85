package supervisor

import (
	"context"
	"log/slog"
	"slices"

	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
)

// restoreEvents restores the events of earlier supervisors from the journal, and the causes that the next event of each pod follows from.
func (s *Supervisor) restoreEvents(ctx context.Context) {
	if s.shared.journal == nil {
		return
	}
	events, err := s.shared.journal.Load()
	if err != nil {
		s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not restore all events", slog.Any("error", err))
	}
	s.shared.ring.Restore(events)
	for _, e := range events {
		if e.UID == "" {
			continue
		}
		if s.shared.restored[e.UID] == nil {
			s.shared.restored[e.UID] = emit.Causes{}
		}
		s.shared.restored[e.UID].Record(e.Container, e.Seq, e.Kind)
	}
}

// History returns the events of all pods that had a name, ordered by Seq: those in the journal and those in memory. It waits for the disk
// until ctx ends. Beside an error it returns the events that could be read.
func (s *Supervisor) History(ctx context.Context, pod string) ([]event.Event, error) {
	recent, _ := s.shared.ring.Since(0)
	recent = slices.DeleteFunc(recent, func(e event.Event) bool { return e.Pod != pod })
	if s.shared.journal == nil {
		return recent, nil
	}
	type stored struct {
		events []event.Event
		err    error
	}
	done := make(chan stored, 1)
	go func() {
		events, err := s.shared.journal.Read(pod)
		done <- stored{s.shared.ring.Correct(events), err}
	}()
	select {
	case r := <-done:
		return event.Merge(r.events, recent), r.err
	case <-ctx.Done():
		return recent, ctx.Err()
	}
}
