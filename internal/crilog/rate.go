package crilog

import (
	"fmt"
	"strconv"
	"sync"
	"time"
)

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

// limiter is a token bucket for both streams of a container. It holds the tokens of one second.
type limiter struct {
	rate   Rate
	report func(lines int64, during time.Duration)

	mu      sync.Mutex
	tokens  float64
	at      time.Time // of tokens; zero: the bucket is full
	dropped int64     // lines since begun
	begun   time.Time
	timer   *time.Timer // nil: nothing is dropped
}

// allow reports whether an entry of this size may be written. Otherwise it counts the line, unless it has begun: then its end is dropped.
func (l *limiter) allow(now time.Time, size int, begun bool) bool {
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
	if l.timer == nil {
		l.begun = now
		l.timer = time.AfterFunc(noticeInterval, func() { l.notice(noticeInterval) })
	}
	if !begun {
		l.dropped++
	}
	return false
}

// notice reports the dropped lines.
func (l *limiter) notice(during time.Duration) {
	l.mu.Lock()
	lines := l.dropped
	l.dropped, l.timer = 0, nil
	l.mu.Unlock()
	if lines > 0 {
		l.report(lines, during)
	}
}

// stop reports the dropped lines at the end of the log.
func (l *limiter) stop(now time.Time) {
	l.mu.Lock()
	pending := l.timer != nil && l.timer.Stop()
	during := now.Sub(l.begun)
	l.mu.Unlock()
	if pending {
		l.notice(min(max(during, time.Second), noticeInterval))
	}
}

// reportDropped writes the notice of lines that the rate limit has dropped.
func (w *Writer) reportDropped(lines int64, during time.Duration) {
	text := fmt.Sprintf("podstead: %d lines dropped in %v (rate limit %v)", lines, during.Round(time.Second), w.opt.Rate)
	stamp := []byte(w.now().UTC().Format(timeFormat))
	w.flush(&batch{entries: appendEntry(nil, stamp, Stderr, false, []byte(text)), lines: 1})
}
