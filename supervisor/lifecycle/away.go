package lifecycle

import "time"

// awayLimit is how long the engine may be away before the status says that it does not know (DEVIATIONS 20).
const awayLimit = 10 * time.Second

// EngineLost says that the engine cannot be reached, so that what is known of the pod may be old.
type EngineLost struct{ At Instant }

func (e EngineLost) apply(f *Facts) { set(&f.Away, e.At) }

// EngineFound says that the engine can be reached again.
type EngineFound struct{ At Instant }

func (EngineFound) apply(f *Facts) { f.Away = Instant{} }

// unknown reports whether the engine has been away for so long that the phase is not known any more.
func (f *Facts) unknown(now Instant) bool {
	return !f.Away.IsZero() && now.Sub(f.Away) > awayLimit
}
