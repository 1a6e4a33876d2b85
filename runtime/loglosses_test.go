package runtime

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLosses checks that losses are summed up for each container, and reported at a bounded rate, the largest first.
func TestLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logLosses
		var got []LogLoss
		accept := true
		report := func(loss LogLoss) bool {
			if accept {
				got = append(got, loss)
			}
			return accept
		}
		l.report(100, report)
		l.add("web_u1", "app", 10)
		l.add("db.example_u2", "db", 20)
		l.add("web_u1", "app", 15)
		accept = false
		l.report(100, report)
		l.report(100, nil)
		accept = true
		l.report(100, report)
		want := []LogLoss{{"web", "u1", "app", 2, 25, 100}, {"db.example", "u2", "db", 1, 20, 100}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}

		got = nil
		for i := range 50 {
			l.add(fmt.Sprintf("p%02d_u", i), "c", 1)
		}
		time.Sleep(lossPause - time.Second)
		if l.report(100, report); len(got) != 0 {
			t.Errorf("%d reports too early", len(got))
		}
		for i, n := range []int{20, 40, 50, 50} {
			time.Sleep(lossPause)
			if l.report(100, report); len(got) != n {
				t.Errorf("%d losses in report %d, want %d", len(got), i, n)
			}
		}
		var names []string
		for _, loss := range got {
			names = append(names, loss.Pod)
		}
		if text := strings.Join(names, " "); !strings.HasPrefix(text, "p00 p01 ") || len(l.byContainer) != 0 {
			t.Errorf("got %s, left %v", text, l.byContainer)
		}
	})
}

// TestLossesOfMany checks that the containers that wait for a report are bounded, and that nothing is left out of the sum.
func TestLossesOfMany(t *testing.T) {
	var l logLosses
	for range 2 {
		for i := range 3 * maxWaitingLosses {
			l.add(fmt.Sprintf("p%03d_u", i), "c", 1)
		}
	}
	if n := len(l.byContainer); n > maxWaitingLosses+1 {
		t.Errorf("%d losses wait, want at most %d", n, maxWaitingLosses+1)
	}
	var got []LogLoss
	l.report(100, func(loss LogLoss) bool {
		got = append(got, loss)
		return true
	})
	if want := (LogLoss{Files: 4 * maxWaitingLosses, Bytes: 4 * maxWaitingLosses, Limit: 100}); len(got) != maxLosses || got[0] != want {
		t.Errorf("%d losses reported, the first is %+v, want %+v", len(got), got[0], want)
	}
}

// TestCheckReports checks that a check reports what it has removed.
func TestCheckReports(t *testing.T) {
	dir := logs(t, "web_u1/app/0.log.1", "web_u1/app/0.log")
	var got []LogLoss
	b := newLogBound(logBoundOptions{Dir: dir, Max: 100 << 10, Log: slog.New(slog.DiscardHandler), Report: func(l LogLoss) bool {
		got = append(got, l)
		return true
	}})
	if _, _, err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]LogLoss{{"web", "u1", "app", 1, 64 << 10, 100 << 10}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
