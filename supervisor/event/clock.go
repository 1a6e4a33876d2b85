package event

import "time"

// correctedFrom is the least difference that [Ring.Correct] corrects. See the tolerance of lifecycle.WallClockSet.
const correctedFrom = time.Second

// Clock reads the clock: the boot ID, the time since that boot on the clock that includes suspend, and the wall clock.
type Clock func() (boot string, mono time.Duration, wall time.Time)

// SetClock sets the clock with which the times of events are corrected. It must be called before all other methods.
func (r *Ring) SetClock(c Clock) { r.clock = c }

// stamp sets the boot and the monotonic clock of a new event, unless they are known.
func (r *Ring) stamp(e *Event) {
	if r.clock == nil || e.Boot != "" {
		return
	}
	boot, mono, wall := r.clock()
	e.Boot, e.Mono = boot, mono-wall.Sub(e.Time)
}

// Correct corrects the times of the events of this boot in place, if the wall clock was set since then, and returns them.
func (r *Ring) Correct(events []Event) []Event {
	if r.clock == nil || len(events) == 0 {
		return events
	}
	boot, mono, wall := r.clock()
	for i := range events {
		e := &events[i]
		if e.Boot != boot {
			continue
		}
		if at := wall.Add(e.Mono - mono).Round(0).UTC(); at.Sub(e.Time).Abs() >= correctedFrom {
			e.Time = at
		}
	}
	return events
}
