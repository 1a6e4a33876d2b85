package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/internal/guard"
)

func TestCall(t *testing.T) {
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		do   func(context.Context) (int, error)
		want int
		err  string // a part of the error; empty: none
		took time.Duration
	}{
		"success": {do: func(context.Context) (int, error) { return 7, nil }, want: 7},
		"error":   {do: func(context.Context) (int, error) { return 0, failed }, err: "failed"},
		"panic":   {do: func(context.Context) (int, error) { panic("a bug") }, err: "panic: a bug"},
		"error after the timeout": {
			do:  func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, failed },
			err: "timed out after 1m0s", took: time.Minute,
		},
		"success during the cleanup time": {
			do:   func(ctx context.Context) (int, error) { <-ctx.Done(); time.Sleep(time.Second); return 7, nil },
			want: 7, took: time.Minute + time.Second,
		},
		"no return": {
			do:  func(context.Context) (int, error) { time.Sleep(time.Hour); return 7, nil },
			err: "did not return after its cancellation", took: time.Minute + 5*time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := guard.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				started := time.Now()
				got, err := guard.Call(ctx, 5*time.Second, slog.New(slog.DiscardHandler), test.do)
				if got != test.want || (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
					t.Errorf("got %d, %v; want %d, %q", got, err, test.want, test.err)
				}
				if took := time.Since(started); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				time.Sleep(time.Hour) // until the abandoned function has returned
			})
		})
	}
}

func TestNoTimeout(t *testing.T) {
	ctx, cancel := guard.WithTimeout(t.Context(), 0)
	if _, limited := ctx.Deadline(); limited {
		t.Error("the context has a deadline")
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("cancel did not end the context")
	}
}

// TestGo expects that a call is reported once: when it has returned, or after the cleanup time.
func TestGo(t *testing.T) {
	for name, test := range map[string]struct {
		returns time.Duration // after the end of the context; negative: before it
		want    time.Duration
	}{
		"before the end": {-time.Second, -time.Second},
		"cleanup":        {time.Second, time.Second},
		"no return":      {time.Hour, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := guard.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				end := time.Now().Add(time.Minute)
				left := make(chan struct{}, 2)
				guard.Go(ctx, 5*time.Second, func() { time.Sleep(time.Minute + test.returns) }, func() { left <- struct{}{} })
				<-left
				if got := time.Since(end); got != test.want {
					t.Errorf("reported %v after the end of the context, want %v", got, test.want)
				}
				time.Sleep(2 * time.Hour)
				if len(left) > 0 {
					t.Error("reported twice")
				}
			})
		})
	}
}
