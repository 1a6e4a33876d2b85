package image

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/podstead/podstead/internal/guard"
)

// slotRate is the rate below which work gives up its slot, in bytes per second.
const slotRate = 16 << 10

// slots limit concurrent work. Work without progress gives up its slot and continues, so that others need not wait for it.
type slots struct {
	free     *semaphore.Weighted
	interval time.Duration // between measurements of progress
	limit    func() int64  // bytes per second that all work may have; nil: unlimited
}

// rate is the rate below which work gives up its slot. With a low limit for all work, it is a part of that.
func (s *slots) rate() int64 {
	if s.limit == nil {
		return slotRate
	}
	return min(slotRate, s.limit()/16)
}

// hold waits for a slot. release must be called when the work is done. The slot is free before that if the meter counts too little.
func (s *slots) hold(ctx context.Context, m *meter) (release func(), err error) {
	if err := s.free.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		defer s.free.Release(1)
		m.watch(ctx, s.interval, s.rate)
	})
	return func() { cancel(); watch.Wait() }, nil
}

// begin waits for a slot, and returns the budget of the work, whose bytes the meter counts. release must be called when the work is done.
func (s *Store) begin(ctx context.Context, in *slots) (m *meter, b *budget, release func(), err error) {
	m = &meter{}
	if release, err = in.hold(ctx, m); err != nil {
		return nil, nil, nil, err
	}
	if b, err = s.newBudget(m.add); err != nil {
		release()
		return nil, nil, nil, err
	}
	return m, b, release, nil
}

// meter counts the bytes that work has received or written.
type meter struct{ bytes atomic.Int64 }

func (m *meter) add(n int64) { m.bytes.Add(n) }

// watch returns when less than the rate, in bytes per second, was counted for an interval, or when ctx is cancelled.
func (m *meter) watch(ctx context.Context, interval time.Duration, rate func() int64) {
	last := int64(0)
	for range guard.Every(ctx, interval) {
		now := m.bytes.Load()
		if now-last < int64(interval.Seconds()*float64(rate())) {
			return
		}
		last = now
	}
}
