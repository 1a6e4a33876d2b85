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
