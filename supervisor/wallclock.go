package supervisor

import (
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// correctTimes corrects the wall times of the pod if the wall clock was set since the last turn, or since the state was saved.
func (l *loop) correctTimes(now lifecycle.Instant) {
	before := l.clock
	l.clock = now
	if before.IsZero() || !now.Set(before) {
		return
	}
	e := lifecycle.WallClockSet{Before: before, At: now}
	l.fold(e, now)
	l.status.Conditions = e.Correct(l.status.Conditions)
}

// eventClock returns the clock of the event log.
func eventClock(now Clock) event.Clock {
	return func() (boot string, mono time.Duration, wall time.Time) {
		t := now()
		return t.Boot, t.Mono, t.Wall
	}
}
