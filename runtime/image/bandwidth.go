package image

import (
	"context"
	"math"
	"sync"

	"golang.org/x/time/rate"
)

// bandwidth limits the bytes per second of all connections that share it. The zero value is unlimited. It is safe for concurrent use.
type bandwidth struct {
	mu      sync.Mutex
	limiter *rate.Limiter // nil: unlimited
}

const (
	// burstsPerSecond is how many parts the bytes of a second are read in, so that several connections take turns.
	burstsPerSecond = 8
	maxBurst        = 64 << 10
)

// Set changes the limit; 0: unlimited. It applies to the connections that exist, from their next read on.
func (b *bandwidth) Set(bytesPerSecond int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytesPerSecond <= 0 {
		b.limiter = nil
		return
	}
	burst := int(max(1, min(bytesPerSecond/burstsPerSecond, maxBurst)))
	b.limiter = rate.NewLimiter(rate.Limit(bytesPerSecond), burst)
}

func (b *bandwidth) current() *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limiter
}

// Rate returns the limit in bytes per second; [math.MaxInt64]: unlimited.
func (b *bandwidth) Rate() int64 {
	if l := b.current(); l != nil {
		return int64(l.Limit())
	}
	return math.MaxInt64
}

// Part returns how much of buf one read may fill.
func (b *bandwidth) Part(buf []byte) []byte {
	if l := b.current(); l != nil && len(buf) > l.Burst() {
		return buf[:l.Burst()]
	}
	return buf
}

// Wait waits until n bytes that were received are within the limit. The error is that of the context.
func (b *bandwidth) Wait(ctx context.Context, n int) error {
	for l := b.current(); l != nil && n > 0; {
		part := min(n, l.Burst()) // the limit may have changed since the read
		if err := l.WaitN(ctx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}
