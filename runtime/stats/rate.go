package stats

import (
	"maps"
	"sync"
	"time"
)

const (
	// minWindow is the shortest time between two samples of CPU time. In a shorter one, the rate would depend on the scheduler.
	minWindow = 500 * time.Millisecond
	// maxWindow is how long a sample is kept. A rate is that of the time since the sample before.
	maxWindow = 2 * time.Minute
)

// samples holds the last sample of CPU time of each cgroup.
type samples struct {
	mu   sync.Mutex
	last map[string]sample // by path
}

type sample struct {
	at   time.Time
	cpu  uint64  // nanoseconds
	rate *uint64 // the rate at that time, in nanoseconds for each second; nil: it was not known
}

func newSamples() samples { return samples{last: map[string]sample{}} }

// rate adds a sample, and returns the rate since the last one; nil: there is none. Requests within [minWindow] get the same rate.
func (s *samples) rate(path string, at time.Time, cpu uint64) *uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last, func(_ string, old sample) bool { return at.Sub(old.at) > maxWindow })
	last, ok := s.last[path]
	if ok && cpu >= last.cpu {
		window := at.Sub(last.at)
		if window < minWindow {
			return last.rate
		}
		rate := uint64(float64(cpu-last.cpu) / window.Seconds())
		s.last[path] = sample{at, cpu, &rate}
		return &rate
	}
	s.last[path] = sample{at: at, cpu: cpu}
	return nil
}
