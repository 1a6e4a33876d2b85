package crilog

import (
	"strconv"
	"sync"
	"time"
)

// This file limits the rate of a log, and counts the lines that are dropped. It does not write the log.

// noticeInterval is the time after the first dropped line until a notice reports all lines that were dropped meanwhile.
const noticeInterval = 10 * time.Second

// Rate is the maximum rate of a log. One of the fields is set, the zero value is no limit.
type Rate struct {
	Lines, Bytes int64 // per second
}

// Units of the text of a [Rate].
const (
	linesPerSecond = " lines/s"
	bytesPerSecond = " bytes/s"
)

// String returns the text of the rate, empty for no limit.
func (r Rate) String() string {
	switch {
	case r.Lines > 0:
		return strconv.FormatInt(r.Lines, 10) + linesPerSecond
	case r.Bytes > 0:
		return strconv.FormatInt(r.Bytes, 10) + bytesPerSecond
	}
	return ""
}

// newLimiter returns a limiter, nil for no limit. It calls report, on a goroutine of its own, 10 seconds after the first line was dropped.
func newLimiter(r Rate, report func(lines int64, during time.Duration)) *rateLimiter {
	if r == (Rate{}) {
		return nil
	}
	l := &rateLimiter{rate: r, report: report}
	l.due = l.notice
	return l
}

// bucket is what a limiter must know of what it has allowed and dropped.
type bucket struct {
	tokens  float64
	at      time.Time // of tokens; zero: the bucket is full
	dropped int64     // lines since begun
	begun   time.Time
}

// rateLimiter is a token bucket for both streams of a container. It holds the tokens of one second. It is safe for concurrent use.
type rateLimiter struct {
	rate   Rate
	report func(lines int64, during time.Duration)
	due    func(during time.Duration) // calls notice

	mu sync.Mutex
	bucket
	end chan struct{} // nil: nothing is dropped; closed by cancel
}

// Allow reports whether an entry of this size may be written. Otherwise it counts the line, unless it has begun: then its end is dropped.
func (l *rateLimiter) Allow(now time.Time, size int, begun bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	fill, cost := float64(l.rate.Lines), 1.0
	if l.rate.Bytes > 0 {
		fill, cost = float64(l.rate.Bytes), float64(size)
	}
	if l.at.IsZero() {
		l.tokens, l.at = fill, now
	}
	if d := now.Sub(l.at); d > 0 { // the clock may be set back
		l.tokens = min(l.tokens+fill*d.Seconds(), fill)
	}
	l.at = now
	// A full bucket allows any entry, also one that is larger than the bucket, which is in debt then.
	if l.tokens >= min(cost, fill) {
		l.tokens -= cost
		return true
	}
	if l.end == nil {
		l.begun = now
		l.await(noticeInterval)
	}
	if !begun {
		l.dropped++
	}
	return false
}

// await reports the dropped lines after a delay, on a goroutine of its own. The caller holds the lock.
func (l *rateLimiter) await(delay time.Duration) {
	l.end = make(chan struct{})
	end := l.end
	go func() {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
			l.due(noticeInterval)
		case <-end:
		}
	}()
}

// notice reports the dropped lines.
func (l *rateLimiter) notice(during time.Duration) {
	l.mu.Lock()
	lines := l.dropped
	l.dropped, l.end = 0, nil
	l.mu.Unlock()
	if lines > 0 {
		l.report(lines, during)
	}
}

// cancel ends the wait for the notice. It returns the time of which the notice reports, which has not been written.
func (l *rateLimiter) cancel(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil {
		close(l.end)
		l.end = nil
	}
	return min(max(now.Sub(l.begun), time.Second), noticeInterval)
}
