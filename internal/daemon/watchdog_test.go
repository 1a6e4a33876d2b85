package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var reports []time.Duration
		start := time.Now()
		var hangs atomic.Bool
		w := &watchdog{
			interval: time.Minute, log: slog.New(slog.NewTextHandler(&log, nil)),
			report: func(context.Context) { reports = append(reports, time.Since(start)) },
			checks: []func(context.Context) error{func(ctx context.Context) error {
				if !hangs.Load() {
					return nil
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}},
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			w.run(ctx)
		}()
		time.Sleep(40 * time.Second)
		hangs.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(reports) != 3 || reports[2] != 30*time.Second {
			t.Errorf("reports at %v, want three until the check hangs", reports)
		}
		hangs.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(reports) < 5 {
			t.Errorf("reports at %v, want more when the check succeeds again", reports)
		}
		cancel()
		<-stopped
		if n := strings.Count(log.String(), "daemon does not respond"); n == 0 || !strings.Contains(log.String(), "error=\"timed out\"") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// TestWatchdogIsOff: without WatchdogSec= nothing is checked.
func TestWatchdogIsOff(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "")
	o := &Options{Log: slog.New(slog.DiscardHandler)}
	w := o.newWatchdog(func(context.Context) error {
		t.Error("the daemon was checked")
		return errors.New("no")
	})
	w.run(t.Context())
}
