package event

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestRing(t *testing.T) {
	r := NewRing(4)
	if events, missed := r.Since(0); len(events) != 0 || missed != 0 {
		t.Errorf("an empty ring holds %v, %d missed", events, missed)
	}
	for range 10 {
		r.Add(Event{})
	}
	for _, tt := range []struct {
		since, missed uint64
		want          []uint64
	}{
		{0, 6, []uint64{7, 8, 9, 10}},
		{5, 1, []uint64{7, 8, 9, 10}},
		{6, 0, []uint64{7, 8, 9, 10}},
		{9, 0, []uint64{10}},
		{10, 0, nil},
		{99, 6, []uint64{7, 8, 9, 10}}, // of a supervisor whose journal was lost
	} {
		events, missed := r.Since(tt.since)
		var got []uint64
		for _, e := range events {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, tt.want) || missed != tt.missed {
			t.Errorf("since %d: %v, %d missed; want %v, %d", tt.since, got, missed, tt.want, tt.missed)
		}
	}
}

func TestRingFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRing(4)
		go func() {
			time.Sleep(time.Minute)
			r.Add(Event{Pod: "p"})
		}()
		events, missed, err := r.Follow(t.Context(), 0)
		if err != nil || len(events) != 1 || events[0].Pod != "p" || missed != 0 {
			t.Errorf("Follow returned %v, %d, %v", events, missed, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if events, _, err := r.Follow(ctx, 1); err == nil {
			t.Errorf("Follow returned %v though nothing happened", events)
		}
	})
}
