package lifecycle

import "time"

// unavailableLimit is how long the engine may be away before the status says that it does not know (DEVIATIONS 20).
const unavailableLimit = 10 * time.Second

// EngineUnavailable says that the engine cannot be reached, so that what is known of the pod may be old.
type EngineUnavailable struct{ At Instant }

func (e EngineUnavailable) apply(f *Facts) { set(&f.EngineUnavailable, e.At) }

// EngineAvailable says that the engine can be reached again.
type EngineAvailable struct{ At Instant }

func (EngineAvailable) apply(f *Facts) { f.EngineUnavailable = Instant{} }

// unknown reports whether the engine has been away for so long that the phase is not known any more.
func (f *Facts) unknown(now Instant) bool {
	return !f.EngineUnavailable.IsZero() && now.Sub(f.EngineUnavailable) > unavailableLimit
}
