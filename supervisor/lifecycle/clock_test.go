package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestBooted(t *testing.T) {
	boot := lifecycle.Instant{Boot: "2", Mono: 100 * time.Second, Wall: time.Unix(2_000_000_000, 0).UTC()}
	moved := func(seconds, back float64) lifecycle.Instant {
		return lifecycle.Instant{Boot: "2", Mono: boot.Mono - time.Duration(back*float64(time.Second)), Wall: at(seconds).Wall}
	}
	full := fold(history{
		up(), ran("app", 1, 1), tick(2), pulled("app", 2), issued("app", 2), tick(3), started("app", 2), tick(4),
		stopped(time.Minute), stop("app", 2, time.Minute), tick(5), sent("app", 2, false), tick(6), kill("app", 2),
		sent("app", 2, true), failed(kill("app", 2), oops), pull("app", 3, 1), tick(7), removeContainer("app", 1),
		failed(removeContainer("app", 1), oops), removeSandbox(1), failed(removeSandbox(1), oops),
		lifecycle.RemovePod{},
		failed(lifecycle.RemovePod{}, oops),
	})
	got := full.Apply(lifecycle.Booted{Saved: at(10), At: boot})
	want := full
	want.Accepted = moved(1, 9)
	want.Sandbox.Requested, want.Sandbox.Ready = moved(1, 9), moved(1, 9)
	want.Sandbox.Lost, want.Sandbox.Message = boot, "the host was rebooted"
	want.Sandbox.Removal = lifecycle.Removal{Requested: moved(7, 3), Failed: moved(7, 3)}
	want.Wait = lifecycle.Wait{}                                        // the pod waits again
	want.Stop.Requested, want.Stop.Deadline = moved(4, 6), moved(64, 0) // the grace period has passed
	want.Removal = want.Sandbox.Removal
	c := *full.Containers["app"]
	c.Previous.Requested, c.Previous.Started, c.Previous.Exited = moved(1, 9), moved(1, 9), moved(1, 9)
	c.Previous.Removal = want.Removal
	c.Newest.Requested, c.Newest.Started = moved(2, 8), moved(3, 7)
	c.Newest.StopRequested, c.Newest.StopSent = moved(4, 6), moved(5, 5)
	c.Newest.KillRequested, c.Newest.KillSent, c.Newest.SignalFailed = moved(6, 4), moved(6, 4), moved(6, 4)
	c.Newest.Exited = boot
	c.Newest.Exit = lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown, Message: "the host was rebooted"}
	c.Pull.Requested = lifecycle.Instant{} // the pull ended with the boot
	c.Backoff = lifecycle.Backoff{}        // a reboot is not a crash
	want.Containers = map[string]*lifecycle.Container{"app": &c}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts after the boot (-want +got):\n%s", diff)
	}
}

// TestBootedUnclean: what ended with a boot that had no shutdown says so.
func TestBootedUnclean(t *testing.T) {
	const want = "the host stopped without a shutdown"
	got := fold(history{up(), running("app", 1)}).Apply(lifecycle.Booted{Saved: at(10), At: lifecycle.Instant{Boot: "2"}, Unclean: true})
	if run := got.Containers["app"].Newest.Exit.Message; run != want || got.Sandbox.Message != want {
		t.Errorf("container %q, sandbox %q; want %q", run, got.Sandbox.Message, want)
	}
}

// TestBootedPodAge checks that the age of a pod does not follow the wall clock, which may be wrong when the host boots.
func TestBootedPodAge(t *testing.T) {
	accepted := at(3)
	accepted.Wall = time.Unix(0, 0)
	facts := lifecycle.Facts{Accepted: accepted}
	for _, tt := range []struct {
		name string
		wall time.Duration // since the last known instant
		want time.Duration
	}{
		{"host was off for an hour", time.Hour, 7 * time.Second},
		{"wall clock is ten years ahead", 87600 * time.Hour, 7 * time.Second},
		{"wall clock was set back by a year", -8760 * time.Hour, 7 * time.Second},
	} {
		boot := lifecycle.Instant{Boot: "2", Mono: 20 * time.Second, Wall: at(10).Wall.Add(tt.wall)}
		got := facts.Apply(lifecycle.Booted{Saved: at(10), At: boot}).Accepted
		if age := boot.Sub(got); age != tt.want || got.Boot != "2" || !got.Wall.Equal(accepted.Wall) {
			t.Errorf("%s: the pod is %v old, want %v (%+v)", tt.name, age, tt.want, got)
		}
	}
}

// TestBootedMovesEveryInstant checks by reflection that no instant of the earlier boot is left, so that a new field is not
// forgotten.
func TestBootedMovesEveryInstant(t *testing.T) {
	old := at(3)
	facts := everyInstant(t, old)
	got := facts.Apply(lifecycle.Booted{Saved: at(5), At: lifecycle.Instant{Boot: "2", Mono: time.Second}})
	visitInstants(got, func(path string, i lifecycle.Instant) {
		if (strings.HasPrefix(path, "facts.Wait.") || strings.HasPrefix(path, "facts.Escalation.")) && i.IsZero() {
			return // the pod waits again, and its escalation starts again
		}
		if i.Boot != "2" || i.Mono != -time.Second || !i.Wall.Equal(old.Wall) {
			t.Errorf("%s is %v", path, i)
		}
	})
}

// TestSetBackMovesEveryInstant checks that no instant is left that is later than the clock, and that the earlier facts do not change.
func TestSetBackMovesEveryInstant(t *testing.T) {
	old := at(30)
	facts := everyInstant(t, old)
	visitInstants(facts.SetBack(at(50), at(10)), func(path string, i lifecycle.Instant) {
		if i.Boot != old.Boot || at(10).Sub(i) != 20*time.Second || !i.Wall.Equal(old.Wall) {
			t.Errorf("%s is %v", path, i)
		}
	})
	visitInstants(facts, func(path string, i lifecycle.Instant) {
		if i != old {
			t.Errorf("%s of the earlier facts is %v", path, i)
		}
	})
	if got, want := facts.Escalation.SetBack(at(50), at(10)), facts.SetBack(at(50), at(10)).Escalation; got != want {
		t.Errorf("the escalation alone is moved to %+v, want %+v", got, want)
	}
	if got := (lifecycle.Facts{}).SetBack(at(50), at(10)); !got.Accepted.IsZero() || got.Accepted.Mono != 0 {
		t.Errorf("the instant never is %v", got.Accepted)
	}
}

// everyInstant returns facts in which every instant is set.
func everyInstant(t *testing.T, old lifecycle.Instant) lifecycle.Facts {
	t.Helper()
	removal := lifecycle.Removal{Requested: old, Failed: old, Done: old}
	hook := lifecycle.Hook{Requested: old, Retry: old, Cancelled: old, Done: old}
	probed := lifecycle.ProbeStatus{At: old}
	attempt := lifecycle.Attempt{
		PostStart: hook, PreStop: hook, Probes: lifecycle.Probes{Startup: probed, Liveness: probed, Readiness: probed},
		Requested: old, Retry: old, Started: old, TerminationRequested: old, CreateFailed: old, StopRequested: old, StopSent: old,
		KillRequested: old, KillSent: old,
		SignalFailed: old, Exited: old, Removal: removal, DeviceAdded: old,
	}
	facts := lifecycle.Facts{
		RestartedAt: old, EngineUnavailable: old, AgainAt: old, Restart: lifecycle.Restart{Requested: old},
		Wait:     lifecycle.Wait{N: 1, Since: old, Ended: old, Conditions: map[string]lifecycle.WaitedFor{"path:/a": {Met: old}}},
		Accepted: old, Removal: removal, Collection: lifecycle.Collection{Requested: old, Removal: removal},
		Stop:    lifecycle.Stop{Requested: old, Deadline: old},
		Sandbox: lifecycle.Sandbox{Requested: old, Ready: old, Lost: old, Failed: old, Removal: removal},
		Escalation: lifecycle.Escalation{
			Since: old, Ready: old, Gap: old, At: old, Reboot: lifecycle.HostReboot{Requested: old, Accepted: old, Failed: old},
		},
		Trial:      lifecycle.Trial{Since: old, Due: old, Passed: old, Failed: old},
		Resize:     lifecycle.Resize{Requested: old, Failed: old, Done: old},
		Job:        lifecycle.JobPart{Ended: old},
		Conditions: map[lifecycle.ConditionType]lifecycle.SetCondition{"gate": {At: old}},
		Containers: map[string]*lifecycle.Container{"app": {
			Newest: attempt, Previous: attempt, Backoff: lifecycle.Backoff{Granted: old},
			Pull: lifecycle.Pull{Requested: old, Cancelled: old, Done: old, Failed: old, Checked: old, Retry: old},
		}},
	}
	if zero := zeroInstants(facts); len(zero) > 0 {
		t.Fatalf("fields are not set by the test: %v", zero)
	}
	return facts
}

func zeroInstants(f lifecycle.Facts) []string {
	var zero []string
	visitInstants(f, func(path string, i lifecycle.Instant) {
		if i.IsZero() {
			zero = append(zero, path)
		}
	})
	return zero
}

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
			Before: lifecycle.Instant{Boot: "2", Mono: time.Minute, Wall: time.Unix(59, 0)},
			At:     lifecycle.Instant{Boot: "2", Mono: time.Minute, Wall: now.Wall},
		}), func(path string, i lifecycle.Instant) {
			if !i.IsZero() && !i.Wall.Equal(old.Wall) && i.Mono < time.Second {
				t.Errorf("%s: %s of an earlier boot is %v", name, path, i)
			}
		})
	}
}

func TestWallClockIsSet(t *testing.T) {
	for step, want := range map[time.Duration]bool{
		0: false, 100 * time.Millisecond: false, -999 * time.Millisecond: false, time.Second: true, -time.Second: true, -time.Hour: true,
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
