package lifecycle

import "time"

// unavailableLimit is how long the engine may be unavailable before the phase becomes Unknown (deviation 20).
const unavailableLimit = 10 * time.Second

// EngineUnavailable reports that the engine cannot be reached, so the facts may be outdated.
type EngineUnavailable struct{ At Instant }

func (e EngineUnavailable) apply(f *Facts) { set(&f.EngineUnavailable, e.At) }

// EngineAvailable reports that the engine can be reached again.
type EngineAvailable struct{ At Instant }

func (e EngineAvailable) apply(f *Facts) {
	if since := f.EngineUnavailable; !since.IsZero() {
		f.Trial.prolong(e.At.Sub(since))
	}
	f.EngineUnavailable = Instant{}
}

// phaseUnknown reports whether the engine has been unavailable for so long that the phase is Unknown.
func (f *Facts) phaseUnknown(now Instant) bool {
	return !f.EngineUnavailable.IsZero() && now.Sub(f.EngineUnavailable) > unavailableLimit
}
