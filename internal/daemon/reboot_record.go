package daemon

import (
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Files named reboot reboot the host for pods that stay unready, at most a number of times a day. They do not decide which pods need that.

// rebootDay is the time for which a reboot counts.
const rebootDay = 24 * time.Hour

// RebootFormat is that of the file of a [RebootRecord].
var RebootFormat = statefile.Format{Version: 1, Unversioned: true}

// RebootRecord has the reboots that count. Their age is the uptime of the host since then, by the monotonic clock: the wall clock of a host
// without a battery-backed clock may show anything after a boot. Time in which the host was off does not count, nor uptime at the
// end of a boot that was not saved, so an age is never too high.
type RebootRecord struct {
	Seen    lifecycle.Instant `json:"seen,omitzero"` // when the ages were computed
	Reboots []Reboot          `json:"reboots,omitempty"`
}

// Reboot is the newest request of a boot to reboot the host. There is at most one for each boot: a request that is repeated has not led to
// a reboot.
type Reboot struct {
	Boot string        `json:"boot" format:"key"` // that was ended
	Pod  string        `json:"pod"`
	Age  time.Duration `json:"age"`
	Wall time.Time     `json:"wall"` // for display only
}

// At returns the record with the ages at an instant, without the reboots that do not count any more. The record is not changed.
func (r RebootRecord) At(now lifecycle.Instant) RebootRecord {
	passed := now.Mono
	if r.Seen.Boot == now.Boot {
		passed = now.Mono - r.Seen.Mono
	}
	next := RebootRecord{Seen: now}
	for _, b := range r.Reboots {
		if b.Age += max(passed, 0); b.Age < rebootDay {
			next.Reboots = append(next.Reboots, b)
		}
	}
	return next
}

// Request adds a reboot for a pod to the record. It replaces an earlier request of the current boot, which has not led to a reboot. The
// error says why the host may not be rebooted.
func (r RebootRecord) Request(pod string, maxPerDay int, now lifecycle.Instant) (RebootRecord, error) {
	if maxPerDay <= 0 {
		return r, fmt.Errorf("reboots are disabled: reboot.maxPerDay is 0")
	}
	r = r.At(now)
	others := slices.DeleteFunc(slices.Clone(r.Reboots), func(b Reboot) bool { return b.Boot == now.Boot })
	if n := len(others); n >= maxPerDay {
		return r, fmt.Errorf("%d of at most %d reboots in 24h of uptime", n, maxPerDay)
	}
	r.Reboots = append(others, Reboot{Boot: now.Boot, Pod: pod, Wall: now.Wall})
	return r, nil
}

// Next returns the uptime until a further reboot is allowed; 0: it is allowed now.
func (r RebootRecord) Next(maxPerDay int) time.Duration {
	if maxPerDay <= 0 || len(r.Reboots) < maxPerDay {
		return 0
	}
	return rebootDay - r.Reboots[len(r.Reboots)-maxPerDay].Age
}
