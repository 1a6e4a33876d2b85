package lifecycle

import "time"

// clockTolerance is the least change of the wall clock that is corrected. The readings of the two clocks in an instant are up to some
// milliseconds apart, or more on a loaded host. A synchronized clock is slewed, which CLOCK_BOOTTIME follows, and not set.
const clockTolerance = time.Second

// WallClockSet reports that the wall clock was set, as a host without a battery-backed clock does when it gets the time. The wall times
// of the boot that were recorded before are corrected. Nothing else changes: decisions do not use the wall clock. Before and At are
// readings of the clock before and after the change.
type WallClockSet struct{ Before, At Instant }

func (e WallClockSet) apply(f *Facts) {
	f.rebase(func(t *Instant) {
		if t.Boot == e.Before.Boot && within(t.Step(e.Before), clockTolerance) {
			t.Wall = e.At.Add(t.Sub(e.At)).Wall
		}
	})
}

// Step returns by how much the wall clock was set between two readings of one boot.
func (t Instant) Step(u Instant) time.Duration {
	return t.Wall.Round(0).Sub(u.Wall.Round(0)) - t.Sub(u) // without the monotonic readings of package time
}

// Set reports whether the wall clock was set between two readings.
func (t Instant) Set(u Instant) bool { return t.Boot == u.Boot && !within(t.Step(u), clockTolerance) }

func within(d, limit time.Duration) bool { return -limit < d && d < limit }

// Correct corrects the transition times of conditions that lie in this boot. The earlier conditions do not change.
func (e WallClockSet) Correct(list []Condition) []Condition {
	corrected := make([]Condition, len(list))
	booted := e.Before.Add(-e.Before.Mono).Wall.Add(-clockTolerance) // transition times are in whole seconds
	for i, c := range list {
		if t := c.LastTransitionTime; !t.Before(booted) && !t.After(e.Before.Wall) {
			c.LastTransitionTime = t.Add(e.At.Step(e.Before)).Truncate(time.Second)
		}
		corrected[i] = c
	}
	return corrected
}
