package crilog

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNotices checks that dropped lines are reported 10 seconds after the first of them, also if nothing else is written, and at the end.
func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notices []string
		begun := time.Now()
		l := newLimiter(Rate{Lines: 2}, func(lines int64, during time.Duration) {
			notices = append(notices, fmt.Sprintf("at %v: %d in %v", time.Since(begun), lines, during))
		})
		write := func(lines int) (allowed int) {
			for range lines {
				if l.Allow(time.Now(), 10, false) {
					allowed++
				}
			}
			return allowed
		}
		if n := write(5); n != 2 {
			t.Errorf("%d of 5 lines, want 2", n)
		}
		time.Sleep(time.Second)
		if n := write(5); n != 2 {
			t.Errorf("%d of 5 lines after a second, want 2", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait() // for the notice
		if n := write(3); n != 2 {
			t.Errorf("%d of 3 lines after a pause, want 2: the bucket holds one second", n)
		}
		time.Sleep(3 * time.Second)
		l.notice(l.cancel(time.Now()))
		l.notice(l.cancel(time.Now()))
		if diff := cmp.Diff([]string{"at 10s: 6 in 10s", "at 1m4s: 1 in 3s"}, notices); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// TestClockSetBack checks that a clock that is set back neither fills the bucket nor stops the log.
func TestClockSetBack(t *testing.T) {
	l := newLimiter(Rate{Bytes: 100}, func(int64, time.Duration) {})
	now := time.Now()
	if !l.Allow(now, 100, false) || l.Allow(now.Add(-time.Hour), 100, false) || !l.Allow(now.Add(-time.Hour).Add(time.Second), 100, false) {
		t.Error("the bucket does not hold 100 bytes for each second")
	}
	l.cancel(now)
}

func TestNoLimit(t *testing.T) {
	if newLimiter(Rate{}, nil) != nil {
		t.Error("a limiter without a limit")
	}
}
