package supervisor

import (
	"github.com/podstead/podstead/internal/diskreserve"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/state"
)

// reservedStore saves states with the space of a reserve if the disk is full.
type reservedStore struct {
	state.Store
	space *diskreserve.Reserve
}

// Save implements [state.Store].
func (s reservedStore) Save(p state.Pod) error {
	return s.space.Do(func() error { return s.Store.Save(p) })
}

// reservedJournal stores events with the space of a reserve if the disk is full.
type reservedJournal struct {
	event.Journal
	space *diskreserve.Reserve
}

// Append implements [event.Journal].
func (j reservedJournal) Append(events []event.Event) error {
	return j.space.Do(func() error { return j.Journal.Append(events) })
}
