package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestWallClockSet checks by reflection that the wall time of every instant of the boot is corrected, and nothing else.
func TestWallClockSet(t *testing.T) {
	const years = 20 * 365 * 24 * time.Hour
	for name, step := range map[string]time.Duration{"forward": years, "back": -years, "by two seconds": 2 * time.Second} {
		old, before, now := at(3), at(5), at(5)
		now.Wall = now.Wall.Add(step)
		facts := everyInstant(t, old)
		visitInstants(facts.Apply(lifecycle.WallClockSet{Before: before, At: now}), func(path string, i lifecycle.Instant) {
			if i.Boot != old.Boot || i.Mono != old.Mono || !i.Wall.Equal(old.Wall.Add(step)) {
				t.Errorf("%s: %s is %v", name, path, i)
			}
		})
		visitInstants(facts, func(path string, i lifecycle.Instant) {
			if i != old {
				t.Errorf("%s: %s of the earlier facts is %v", name, path, i)
			}
		})
		booted := facts.Apply(lifecycle.Booted{Saved: at(4), At: lifecycle.Instant{Boot: "2", Mono: time.Second, Wall: time.Unix(0, 0)}})
		visitInstants(booted.Apply(lifecycle.WallClockSet{
			Before: lifecycle.Instant{Boot: "2", Mono: time.Minute, Wall: time.Unix(59, 0)}, At: lifecycle.Instant{Boot: "2", Mono: time.Minute, Wall: now.Wall},
		}), func(path string, i lifecycle.Instant) {
			if !i.IsZero() && !i.Wall.Equal(old.Wall) && i.Mono < time.Second {
				t.Errorf("%s: %s of an earlier boot is %v", name, path, i)
			}
		})
	}
}

func TestWallClockIsSet(t *testing.T) {
	for step, want := range map[time.Duration]bool{
		0: false, 100 * time.Millisecond: false, -999 * time.Millisecond: false, time.Second: true, -time.Hour: true,
	} {
		now := at(10)
		now.Wall = now.Wall.Add(step)
		if got := now.Set(at(3)); got != want {
			t.Errorf("step %v: set: %t, want %t", step, got, want)
		}
	}
	other := at(10)
	other.Boot, other.Wall = "other", other.Wall.Add(time.Hour)
	if other.Set(at(3)) {
		t.Error("readings of two boots are compared")
	}
}

func TestWallClockSetCorrectsConditions(t *testing.T) {
	before := lifecycle.Instant{Boot: "1", Mono: time.Minute, Wall: time.Unix(60, 0).UTC()}
	now := lifecycle.Instant{Boot: "1", Mono: 2 * time.Minute, Wall: time.Unix(1_000_120, 0).UTC()}
	list := func(seconds ...int64) (all []lifecycle.Condition) {
		for _, s := range seconds {
			all = append(all, lifecycle.Condition{Type: "T", LastTransitionTime: time.Unix(s, 0).UTC()})
		}
		return all
	}
	got := lifecycle.WallClockSet{Before: before, At: now}.Correct(list(-5, 0, 30, 60, 500_000))
	if diff := cmp.Diff(list(-5, 1_000_000, 1_000_030, 1_000_060, 500_000), got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
