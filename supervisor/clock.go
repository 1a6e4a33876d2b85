package supervisor

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/bootid"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Clock reads the time. A loop calls it once per turn.
type Clock func() lifecycle.Instant

// SystemClock returns the clock of the current boot. Mono is CLOCK_BOOTTIME, which never leaps and also advances while the host is
// suspended. Wall is the wall clock, without the monotonic reading of package time: times must follow a clock that is set.
func SystemClock() (Clock, error) {
	boot, err := bootid.Read()
	if err != nil {
		return nil, err
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return nil, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return func() lifecycle.Instant {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err)) // it was readable above
		}
		return lifecycle.Instant{Boot: boot, Mono: time.Duration(ts.Nano()), Wall: time.Now().Round(0)}
	}, nil
}

// eventClock returns the clock of the event log.
func eventClock(now Clock) event.Clock {
	return func() (boot string, mono time.Duration, wall time.Time) {
		t := now()
		return t.Boot, t.Mono, t.Wall
	}
}
