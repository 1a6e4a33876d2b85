package image

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestBandwidthIsShared checks the time that several connections need together, and a change of the limit.
func TestBandwidthIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bandwidth
		receive := func(each int) time.Duration {
			start := time.Now()
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					buf := make([]byte, 32<<10)
					for n := 0; n < each; {
						got := min(len(b.Part(buf)), each-n)
						if err := b.Wait(t.Context(), got); err != nil {
							t.Error(err)
						}
						n += got
					}
				})
			}
			all.Wait()
			return time.Since(start)
		}
		if took := receive(1 << 20); took != 0 {
			t.Errorf("without a limit: %v", took)
		}
		b.Set(1 << 20)
		if took := receive(1 << 20); took < 3500*time.Millisecond || took > 4100*time.Millisecond {
			t.Errorf("4 MiB with 1 MiB/s: %v", took)
		}
		b.Set(4 << 10)
		if took := receive(10 << 10); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("40 KiB with 4 KiB/s: %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Wait(ctx, 1<<20); err == nil {
			t.Error("a wait ignores its context")
		}
		b.Set(0)
		if took := receive(1 << 20); took != 0 {
			t.Errorf("after the limit: %v", took)
		}
	})
}

func TestQuotas(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		after  string // "date": in 20s
		repeat bool
		delay  time.Duration
		fails  bool
	}{
		{"success", 200, "60", false, 0, false},
		{"failure", 500, "60", false, 0, false},
		{"unavailable", 503, "", false, 0, false},
		{"unavailable with a time", 503, "5", true, 5 * time.Second, false},
		{"seconds", 429, "7", true, 7 * time.Second, false},
		{"date", 429, "date", true, 20 * time.Second, false},
		{"no time", 429, "", true, 2 * time.Second, false},
		{"zero", 429, "0", true, time.Second, false},
		{"negative", 429, "-5", true, time.Second, false},
		{"minutes", 429, "600", false, 600 * time.Second, true},
		{"years", 429, "99999999999999", false, 15 * time.Minute, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q quotas
				if test.after == "date" {
					test.after = time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
				}
				resp := &http.Response{StatusCode: test.status, Header: http.Header{"Retry-After": {test.after}}}
				if got := q.Note("a.example", resp); got != test.repeat {
					t.Errorf("repeat %t", got)
				}
				start := time.Now()
				if err := q.Wait(t.Context(), "b.example"); err != nil || time.Since(start) != 0 {
					t.Errorf("another host: %v", err)
				}
				err := q.Wait(t.Context(), "a.example")
				if e, ok := errors.AsType[*quotaError](err); ok != test.fails || ok && e.Delay != test.delay {
					t.Errorf("error %v", err)
				}
				if test.fails {
					<-time.After(test.delay)
					test.delay, start = 0, time.Now()
					err = q.Wait(t.Context(), "a.example")
				}
				if took := time.Since(start); err != nil || took != test.delay {
					t.Errorf("waited %v, %v, want %v", took, err, test.delay)
				}
			})
		})
	}
}
