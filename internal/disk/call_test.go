package disk

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestCall: a function that hangs is abandoned after the timeout, and no other one is called until it returns.
func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewCaller(slog.New(slog.DiscardHandler))
		hangs := func() (int, error) { time.Sleep(time.Hour); return 1, nil }
		works := func() (int, error) { return 2, nil }
		started := time.Now()
		if _, err := Call(t.Context(), d, hangs); !errors.Is(err, UnresponsiveError{}) {
			t.Errorf("error %v, want a timeout", err)
		}
		if took := time.Since(started); took != CallTimeout+CallCleanup {
			t.Errorf("took %v", took)
		}
		if _, err := Call(t.Context(), d, works); !errors.Is(err, UnresponsiveError{}) || time.Since(started) != CallTimeout+CallCleanup {
			t.Errorf("while another call hangs: %v after %v", err, time.Since(started))
		}
		time.Sleep(time.Hour)
		if n, err := Call(t.Context(), d, works); n != 2 || err != nil {
			t.Errorf("later: %d, %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		started = time.Now()
		if _, err := Call(ctx, d, hangs); !errors.Is(err, context.Canceled) || time.Since(started) > CallCleanup {
			t.Errorf("after the end of the context: %v after %v", err, time.Since(started))
		}
		time.Sleep(time.Hour)
	})
}
