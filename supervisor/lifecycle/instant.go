package lifecycle

import "time"

// Instant is one reading of the clock: a duration on the monotonic clock that goes on through suspend
// (CLOCK_BOOTTIME), with the boot that it counts from, and the wall clock beside it for display only. Order and
// differences follow Mono, so that a wall clock that leaps changes nothing. Two instants compare only within one boot;
// the facts of an earlier boot are moved into the present one by [Booted]. The zero Instant is "never".
type Instant struct {
	Boot string        `json:"boot"` // the kernel's boot ID; not empty but in the zero Instant
	Mono time.Duration `json:"mono"` // since that boot; negative for what was before it
	Wall time.Time     `json:"wall"`
}

// IsZero reports whether the instant is "never".
func (t Instant) IsZero() bool { return t.Boot == "" }

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant {
	return Instant{Boot: t.Boot, Mono: t.Mono + d, Wall: t.Wall.Add(d)}
}

// Sub returns how long after u the instant is.
func (t Instant) Sub(u Instant) time.Duration { return t.Mono - u.Mono }

// Before reports whether the instant is earlier than u.
func (t Instant) Before(u Instant) bool { return t.Mono < u.Mono }

// earlier returns the earlier of two instants, where "never" is later than all.
func earlier(t, u Instant) Instant {
	if t.IsZero() || (!u.IsZero() && u.Before(t)) {
		return u
	}
	return t
}

// later returns the later of two instants.
func later(t, u Instant) Instant {
	if t.Before(u) {
		return u
	}
	return t
}
