package image

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxQuotaDelay bounds how long a registry can delay the next request.
	maxQuotaDelay = 15 * time.Minute
	// maxQuotaWait is how long a request waits. If it had to wait longer, it fails, and the back-off of the pull continues.
	maxQuotaWait = 30 * time.Second
	// defaultQuotaDelay follows a response without Retry-After.
	defaultQuotaDelay = 2 * time.Second
	// maxQuotaHosts bounds the hosts that are remembered.
	maxQuotaHosts = 1024
)

// quotas remember until when registries accept no request, as their Retry-After says (RFC 9110, section 10.2.3). The zero value is usable.
// It is safe for concurrent use.
type quotas struct {
	mu    sync.Mutex
	until map[string]time.Time // by host:port
}

// quotaError is the error of a request to a registry that accepts none for a time.
type quotaError struct {
	Host  string
	Delay time.Duration
}

func (e *quotaError) Error() string {
	return fmt.Sprintf("registry %s limits requests (429 Too Many Requests), next request possible in %v", e.Host,
		e.Delay.Round(time.Second))
}

// Wait waits until a host accepts requests. If that takes too long, it returns a [*quotaError] at once.
func (q *quotas) Wait(ctx context.Context, host string) error {
	for {
		delay := q.delay(host)
		if delay <= 0 {
			return nil
		}
		if delay > maxQuotaWait {
			return &quotaError{host, delay}
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

func (q *quotas) delay(host string) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	delay := time.Until(q.until[host])
	if delay <= 0 {
		delete(q.until, host)
	}
	return delay
}

// Note records a response of a host, and reports whether its request can be repeated after [quotas.Wait].
func (q *quotas) Note(host string, resp *http.Response) bool {
	delay, ok := retryAfter(resp, time.Now())
	if !ok {
		return false
	}
	until := time.Now().Add(delay)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.until == nil || len(q.until) >= maxQuotaHosts {
		q.until = map[string]time.Time{}
	}
	if until.After(q.until[host]) {
		q.until[host] = until
	}
	return delay <= maxQuotaWait
}

// retryAfter returns how long a registry wants no request, and whether it wants that. A service that is unavailable says so by the header.
func retryAfter(resp *http.Response, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(resp.Header.Get("Retry-After"))
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
	case resp.StatusCode == http.StatusServiceUnavailable && text != "":
	default:
		return 0, false
	}
	delay := defaultQuotaDelay
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		delay = time.Duration(min(max(seconds, 0), int64(maxQuotaDelay/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		delay = at.Sub(now)
	}
	return min(max(delay, time.Second), maxQuotaDelay), true
}
