package guard_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/internal/guard"
)

// TestPoll checks when loops run, and that they return when the context ends or they are left.
func TestPoll(t *testing.T) {
	for name, test := range map[string]struct {
		loop    func(context.Context, time.Duration) func(func() bool)
		timeout time.Duration
		leaveAt int // the pass in which the loop is left
		passes  int
		took    time.Duration
	}{
		"poll":            {guard.Poll, 2500 * time.Millisecond, 0, 3, 2500 * time.Millisecond},
		"poll, left":      {guard.Poll, time.Hour, 3, 3, 2 * time.Second},
		"poll once":       {guard.Poll, time.Hour, 1, 1, 0},
		"poll, too late":  {guard.Poll, 0, 0, 1, 0},
		"every":           {guard.Every, 2500 * time.Millisecond, 0, 2, 2500 * time.Millisecond},
		"every, left":     {guard.Every, time.Hour, 2, 2, 2 * time.Second},
		"every, too late": {guard.Every, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				began, passes := time.Now(), 0
				for range test.loop(ctx, time.Second) {
					if passes++; passes == test.leaveAt {
						break
					}
				}
				if took := time.Since(began); passes != test.passes || took != test.took {
					t.Errorf("%d passes in %v, want %d in %v", passes, took, test.passes, test.took)
				}
			})
		})
	}
}
