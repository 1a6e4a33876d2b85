package live

import (
	"context"
	"time"

	"github.com/podstead/podstead/api"
)

const (
	// restFactor is the time between two measurements, in durations of the last one: they take at most a fifth of the time.
	restFactor = 4
	minRest    = time.Second
)

// measurement is the explanations and the CPU and memory of all pods.
type measurement struct {
	why       []api.Explanation
	explained time.Time // before why was requested
	stats     []api.PodStats
	sampled   time.Time // before stats were requested
}

// measurer measures for all screens, one at a time.
type measurer struct {
	daemon interface {
		WhyAll(ctx context.Context, lines int) (api.ExplanationList, error)
		Stats(ctx context.Context, pods ...string) (api.StatsSummary, error)
	}
	rest time.Duration // the least one
	lock chan struct{} // of the fields below
	last measurement
	next time.Time // the earliest start of the next measurement
}

// measure returns explanations from after the last change of a pod, and CPU and memory from now or later. It waits until
// the daemon had a rest after the measurement before, and shares measurements with other screens.
func (m *measurer) measure(ctx context.Context, changed, now time.Time) (*measurement, error) {
	select {
	case m.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-m.lock }()
	if !m.last.sampled.Before(now) && !m.last.explained.Before(changed) {
		last := m.last
		return &last, nil
	}
	if !pause(ctx, time.Until(m.next)) {
		return nil, context.Cause(ctx)
	}
	begun := time.Now()
	defer func() { m.next = time.Now().Add(max(restFactor*time.Since(begun), m.rest)) }()
	stats, err := m.daemon.Stats(ctx)
	if err != nil {
		return nil, err
	}
	next := measurement{m.last.why, m.last.explained, stats.Pods, begun}
	if m.last.explained.Before(changed) || begun.Sub(m.last.explained) >= whyInterval {
		next.explained = time.Now()
		list, err := m.daemon.WhyAll(ctx, 0)
		if err != nil {
			return nil, err
		}
		next.why = list.Items
	}
	m.last = next
	return &next, nil
}
