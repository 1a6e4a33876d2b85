package lifecycle

import (
	"time"
)

// Instant is one reading of the clock: the monotonic clock that includes suspend (CLOCK_BOOTTIME), the boot that it counts from,
// and the wall clock for display only. Comparisons and differences use Mono, so that changes of the wall clock have no effect.
// Two instants can be compared only within one boot; [Booted] moves the facts of an earlier boot into the current one. The zero
// Instant means "never".
type Instant struct {
	Boot string        `json:"boot"` // the kernel's boot ID; empty only in the zero Instant
	Mono time.Duration `json:"mono"` // since that boot; negative for instants before it
	Wall time.Time     `json:"wall"`
}

// IsZero reports whether the instant is "never".
func (t Instant) IsZero() bool { return t.Boot == "" }

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant {
	return Instant{Boot: t.Boot, Mono: t.Mono + d, Wall: t.Wall.Add(d)}
}

// Sub returns the duration from u to t.
func (t Instant) Sub(u Instant) time.Duration { return t.Mono - u.Mono }

// Before reports whether the instant is earlier than u.
func (t Instant) Before(u Instant) bool { return t.Mono < u.Mono }

// SetBack moves an instant as [Facts.SetBack] does.
func (t Instant) SetBack(saved, now Instant) Instant {
	if !t.IsZero() {
		t.Mono += now.Mono - saved.Mono
	}
	return t
}

// earlier returns the earlier of two instants, where "never" is later than all others.
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
