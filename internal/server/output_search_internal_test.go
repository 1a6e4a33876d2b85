package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
)

// TestSearchWaitsForClient checks that the time in which a client does not read is not a part of a search.
func TestSearchWaitsForClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan api.OutputRecord)
		c := containerOutput{search: newSearch("x", true), lines: lines}
		read := func(after time.Duration) {
			go func() {
				time.Sleep(after)
				<-lines
			}()
			if err := c.record(t.Context(), api.OutputRecord{}); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now()
		read(time.Hour) // before the search
		for i := range 2 {
			if stopped := c.search.spend(1, at.Add(time.Duration(i))); stopped != nil {
				t.Fatalf("line %d: %+v", i, stopped)
			}
			read(time.Hour)
		}
		time.Sleep(maxSearchTime)
		stopped := c.search.spend(1, at.Add(2))
		if stopped == nil || stopped.Bytes != 2 || stopped.Seconds != maxSearchTime.Seconds() || !c.search.isStopped() {
			t.Errorf("%+v", stopped)
		}
	})
}

// TestSearchSetBack checks that a search is bounded also if no line is later than the first one, which then has no place to continue at.
func TestSearchSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := time.Now()
		before, after := first.Add(-time.Hour), first.Add(time.Second)
		for _, test := range []struct {
			bytes int64 // that are searched after the first line, of earlier times
			took  time.Duration
			at    time.Time // of the next line
			stop  bool
			from  time.Time
		}{
			{maxSearchBytes, 0, before, false, time.Time{}},
			{maxSearchBytes, 0, after, true, after},
			{backFactor * maxSearchBytes, 0, before, true, time.Time{}},
			{backFactor * maxSearchBytes, 0, first, true, time.Time{}},
			{1, maxSearchTime, before, false, time.Time{}},
			{1, maxSearchTime, after, true, after},
			{1, backFactor * maxSearchTime, before, true, time.Time{}},
		} {
			s := newSearch("x", true)
			for _, line := range []struct {
				bytes int64
				at    time.Time
			}{{0, first}, {test.bytes, before}} {
				if stopped := s.spend(int(line.bytes), line.at); stopped != nil {
					t.Fatalf("%+v: stopped early: %+v", test, stopped)
				}
			}
			time.Sleep(test.took)
			stopped := s.spend(1, test.at)
			if (stopped != nil) != test.stop || s.isStopped() != test.stop {
				t.Errorf("%+v: %+v", test, stopped)
			}
			if stopped != nil && (!stopped.From.Equal(test.from) || stopped.Bytes != test.bytes || stopped.Seconds != test.took.Seconds()) {
				t.Errorf("%+v: %+v", test, stopped)
			}
		}
	})
}
