package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	ofcron "github.com/podstead/podstead/spec/calendar"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// world carries out decisions in virtual time.
type world struct {
	t       *testing.T
	zone    *time.Location
	facts   facts
	takes   time.Duration        // of each run
	ends    map[string]time.Time // when the runs end, by name
	starts  []string
	reports []string
	reason  api.Reason
	next    time.Time
}

func newWorld(t *testing.T, rule *spec.Schedule, now string) *world {
	t.Helper()
	times, err := ofcron.Parse(rule.Cron, rule.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := ofcron.Zone(rule.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, zone: zone, takes: 10 * time.Minute, ends: map[string]time.Time{}}
	at := w.time(now)
	w.facts = facts{rule: rule, times: times, since: at, saved: at, now: at}
	return w
}

const layout = "2006-01-02 15:04"

func (w *world) time(text string) time.Time {
	w.t.Helper()
	at, err := time.ParseInLocation(layout, text, w.zone)
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

// turn decides once, carries it out, and reports whether something has changed.
func (w *world) turn() (again time.Time, changed bool) {
	d := decide(&w.facts)
	f := &w.facts
	f.seen = f.now
	if d.since.Before(f.since) && !d.since.Equal(f.now) {
		w.t.Fatalf("runs up to %v were done with, now up to %v", f.since, d.since)
	}
	f.since, f.saved, f.ahead, f.waiting, w.reason, w.next = d.since, d.since, d.ahead, d.waiting, d.reason, d.next
	f.loaded = f.loaded && d.reason == api.ReasonClockNotSet
	for _, r := range d.reports {
		w.reports = append(w.reports, f.now.In(w.zone).Format(layout)+" "+string(r.kind))
	}
	for _, r := range d.remove {
		f.runs = slices.DeleteFunc(f.runs, func(other Run) bool { return other.Pod == r.Pod })
		delete(w.ends, r.Pod)
	}
	if !d.start.IsZero() {
		name := fmt.Sprintf("run-%d", len(w.starts))
		f.runs = append(f.runs, Run{Pod: name, Scheduled: d.start, Created: f.now})
		w.starts = append(w.starts, f.now.In(w.zone).Format(layout))
		w.ends[name] = f.now.Add(w.takes)
	}
	return d.again, len(d.reports)+len(d.remove) > 0 || !d.start.IsZero()
}

// until lets the time pass.
func (w *world) until(end time.Time) {
	for {
		f := &w.facts
		for i := range f.runs {
			if ends, running := w.ends[f.runs[i].Pod]; running && !ends.After(f.now) {
				f.runs[i].Finished, f.runs[i].Phase = true, lifecycle.PhaseSucceeded
				delete(w.ends, f.runs[i].Pod)
			}
		}
		again, changed := w.turn()
		if changed {
			continue
		}
		next := end
		for _, at := range w.ends {
			if at.Before(next) {
				next = at
			}
		}
		if !again.IsZero() && again.Before(next) {
			next = again
		}
		if !next.After(f.now) {
			if f.now.Before(end) {
				w.t.Fatalf("nothing changes at %v, which is to be decided again at %v", f.now, again)
			}
			return
		}
		// the daemon has decided each maxSleep, without an effect
		f.now, f.seen = next, latest(f.seen, next.Add(-maxSleep))
	}
}

// leap sets the clock of the host. What runs is not affected.
func (w *world) leap(to time.Time) {
	for name, ends := range w.ends {
		w.ends[name] = ends.Add(to.Sub(w.facts.now))
	}
	w.facts.now = to
}

func (w *world) check(starts, reports []string) {
	w.t.Helper()
	if !slices.Equal(w.starts, starts) || !slices.Equal(w.reports, reports) {
		w.t.Errorf("runs:\n%s\nwant:\n%s\nevents:\n%s\nwant:\n%s", strings.Join(w.starts, "\n"), strings.Join(starts, "\n"),
			strings.Join(w.reports, "\n"), strings.Join(reports, "\n"))
	}
}

// TestYear: a run of each night of a year, in three zones, with the night that daylight saving time shortens and the one that it extends.
func TestYear(t *testing.T) {
	for zone, want := range map[string][]string{
		"Europe/Berlin":       {"2026-03-29 03:00", "2026-10-25 02:30"},
		"America/New_York":    {"2026-03-08 03:00", "2026-11-01 02:30"},
		"Australia/Lord_Howe": {"2026-04-05 02:30", "2026-10-04 02:30"},
	} {
		w := newWorld(t, &spec.Schedule{Cron: "30 2 * * *", TimeZone: zone}, "2026-01-01 00:00")
		w.until(w.time("2027-01-01 00:00"))
		if len(w.starts) != 365 || len(w.reports) != 0 || w.reason != api.ReasonScheduled {
			t.Errorf("%s: %d runs, events %q, %s", zone, len(w.starts), w.reports, w.reason)
		}
		for _, start := range want {
			if !slices.Contains(w.starts, start) {
				t.Errorf("%s: no run at %s", zone, start)
			}
		}
		if n := len(w.facts.runs); n != defaultSuccessful {
			t.Errorf("%s: %d runs are kept", zone, n)
		}
	}
}

const defaultSuccessful = 3

// TestPowerOff: each week the host is off in the nights of Saturday and Sunday. The newest run is made up for, the other one is reported.
func TestPowerOff(t *testing.T) {
	for _, tc := range []struct {
		name     string
		deadline *spec.Seconds
		mondays  string // when the runs start on Mondays
		reports  int    // for each week
	}{
		{"without a deadline", nil, "08:00", 1},
		{"with a deadline that has passed", new(spec.Seconds(3600)), "", 1},
		{"with a deadline that has not passed", new(spec.Seconds(5 * 3600)), "08:00", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, &spec.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin", StartingDeadlineSeconds: tc.deadline},
				"2026-01-05 00:00")
			w.facts.since = w.facts.since.Add(-time.Minute)
			for week := range 52 {
				monday := w.time("2026-01-05 08:00").In(w.zone).AddDate(0, 0, 7*week)
				if week > 0 {
					w.facts.now = monday // since the power went off on Friday
				}
				w.until(time.Date(monday.Year(), monday.Month(), monday.Day()+5, 0, 0, 0, 0, w.zone))
			}
			made := 0
			for _, start := range w.starts {
				if strings.HasSuffix(start, " 08:00") {
					made++
				} else if !strings.HasSuffix(start, " 03:00") {
					t.Errorf("a run at %s", start)
				}
			}
			if want := map[string]int{"08:00": 51, "": 0}[tc.mondays]; made != want {
				t.Errorf("%d runs were made up for, want %d", made, want)
			}
			if len(w.reports) != tc.reports*51 {
				t.Errorf("%d events: %q", len(w.reports), w.reports)
			}
		})
	}
}

func TestLeaps(t *testing.T) {
	nightly := spec.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}
	minutely := spec.Schedule{Cron: "* * * * *", TimeZone: "Europe/Berlin"}
	for _, tc := range []struct {
		name            string
		rule            spec.Schedule
		from            string
		do              func(w *world)
		starts, reports []string
	}{
		{
			"forwards by a month", nightly, "2026-05-01 04:00",
			func(w *world) { w.leap(w.time("2026-06-01 12:00")); w.until(w.time("2026-06-02 12:00")) },
			[]string{"2026-06-01 12:00", "2026-06-02 03:00"},
			[]string{"2026-06-01 12:00 ScheduleMissed"},
		},
		{
			"forwards by ten years, with a run of each minute", minutely, "2026-05-01 04:00",
			func(w *world) { w.leap(w.time("2036-05-01 04:00")); w.until(w.facts.now.Add(90 * time.Second)) },
			[]string{"2036-05-01 04:00", "2036-05-01 04:01"},
			[]string{"2036-05-01 04:00 ScheduleMissed"},
		},
		{
			"back by two hours after a run", nightly, "2026-05-01 02:00",
			func(w *world) {
				w.until(w.time("2026-05-01 04:00"))
				w.leap(w.time("2026-05-01 02:00"))
				w.until(w.time("2026-05-02 04:00"))
			},
			[]string{"2026-05-01 03:00", "2026-05-02 03:00"},
			nil,
		},
		{
			"back by a month", nightly, "2026-05-31 02:00",
			func(w *world) {
				w.until(w.time("2026-05-31 04:00"))
				w.leap(w.time("2026-05-01 02:00"))
				w.until(w.time("2026-05-02 04:00"))
			},
			[]string{"2026-05-31 03:00", "2026-05-01 03:00", "2026-05-02 03:00"},
			[]string{"2026-05-01 02:00 ScheduleClockSetBack"},
		},
		{
			"far away and back", nightly, "2026-05-01 04:00",
			func(w *world) {
				w.leap(w.time("2099-01-01 00:00"))
				w.until(w.facts.now.Add(time.Minute))
				w.leap(w.time("2026-05-01 04:10"))
				w.until(w.time("2026-05-02 04:00"))
			},
			[]string{"2099-01-01 00:00", "2026-05-02 03:00"},
			[]string{"2099-01-01 00:00 ScheduleMissed", "2026-05-01 04:10 ScheduleClockSetBack"},
		},
		{
			"a clock that is not set at boot, with a night by that clock", nightly, "2026-05-01 04:00",
			func(w *world) {
				w.until(w.time("2026-05-01 05:00"))
				w.leap(time.Unix(0, 0))
				w.until(time.Unix(0, 0).Add(12 * time.Hour))
				if w.reason != api.ReasonClockNotSet || !w.next.IsZero() {
					w.t.Errorf("%s, next run at %v", w.reason, w.next)
				}
				w.leap(w.time("2026-05-01 20:00"))
				w.until(w.time("2026-05-02 04:00"))
			},
			[]string{"2026-05-02 03:00"},
			nil,
		},
		{
			"a clock that is not set at boot, after a night without power", nightly, "2026-05-01 04:00",
			func(w *world) {
				w.leap(time.Unix(60, 0))
				w.until(time.Unix(120, 0))
				w.leap(w.time("2026-05-02 09:00"))
				w.until(w.time("2026-05-02 10:00"))
			},
			[]string{"2026-05-02 09:00"},
			nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, &tc.rule, tc.from)
			w.takes = time.Second
			tc.do(w)
			w.check(tc.starts, tc.reports)
		})
	}
}

// TestBootClock: a host without a real-time clock boots with the time of its image. No run is repeated when the clock is set.
func TestBootClock(t *testing.T) {
	w := newWorld(t, &spec.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}, "2026-05-20 02:00")
	w.until(w.time("2026-05-20 04:00"))
	for range 3 {
		w.leap(w.time("2026-05-01 00:00"))
		w.facts.loaded, w.facts.seen = true, time.Time{}
		w.until(w.time("2026-05-01 00:01"))
		w.leap(w.time("2026-05-20 05:00"))
		w.until(w.time("2026-05-20 06:00"))
	}
	w.until(w.time("2026-05-21 04:00"))
	if !w.facts.ahead.IsZero() {
		t.Errorf("the clock has passed %v", w.facts.ahead)
	}
	w.leap(w.time("2026-05-01 00:00")) // and the next night without power
	w.until(w.time("2026-05-01 00:01"))
	w.leap(w.time("2026-05-22 08:00"))
	w.until(w.time("2026-05-22 09:00"))
	back := "2026-05-01 00:00 ScheduleClockSetBack"
	w.check([]string{"2026-05-20 03:00", "2026-05-21 03:00", "2026-05-22 08:00"}, []string{back, back, back, back})
}

// TestClockWasAhead: the times that a clock which was ahead has shown come again when it gets there.
func TestClockWasAhead(t *testing.T) {
	w := newWorld(t, &spec.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}, "2026-05-03 02:00")
	w.takes = time.Second
	w.until(w.time("2026-05-03 04:00"))
	w.leap(w.time("2026-05-01 02:00"))
	w.until(w.time("2026-05-04 04:00"))
	w.check([]string{"2026-05-03 03:00", "2026-05-01 03:00", "2026-05-02 03:00", "2026-05-03 03:00", "2026-05-04 03:00"},
		[]string{"2026-05-01 02:00 ScheduleClockSetBack"})
}

func TestConcurrency(t *testing.T) {
	for _, tc := range []struct {
		name            string
		policy          spec.ConcurrencyPolicy
		deadline        *spec.Seconds
		takes           time.Duration
		starts, reports []string
		active          int
	}{
		{
			"allowed by default", "", nil, 90 * time.Minute,
			[]string{"2026-05-01 01:00", "2026-05-01 02:00", "2026-05-01 03:00"},
			nil, 2,
		},
		{
			"forbidden: the newest waits", spec.ConcurrencyForbid, nil, 130 * time.Minute,
			[]string{"2026-05-01 01:00", "2026-05-01 03:10"},
			[]string{"2026-05-01 02:00 ScheduleWaiting", "2026-05-01 03:00 ScheduleWaiting", "2026-05-01 03:10 ScheduleMissed"},
			1,
		},
		{
			"forbidden, with a deadline", spec.ConcurrencyForbid, new(spec.Seconds(60)), 130 * time.Minute,
			[]string{"2026-05-01 01:00"},
			[]string{
				"2026-05-01 02:00 ScheduleWaiting", "2026-05-01 02:01 ScheduleMissed", "2026-05-01 03:00 ScheduleWaiting",
				"2026-05-01 03:01 ScheduleMissed",
			},
			0,
		},
		{
			"replaced", spec.ConcurrencyReplace, nil, 90 * time.Minute,
			[]string{"2026-05-01 01:00", "2026-05-01 02:00", "2026-05-01 03:00"},
			nil, 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, &spec.Schedule{
				Cron: "0 1-3 * * *", TimeZone: "UTC", ConcurrencyPolicy: tc.policy, StartingDeadlineSeconds: tc.deadline,
			}, "2026-05-01 00:00")
			w.takes = tc.takes
			w.until(w.time("2026-05-01 03:20"))
			w.check(tc.starts, tc.reports)
			if n := len(w.facts.active()); n != tc.active {
				t.Errorf("%d runs are active: %+v", n, w.facts.runs)
			}
		})
	}
}

// TestReplaceWaits: a run that replaces another one starts when the other one is deleted, which may take its grace period.
func TestReplaceWaits(t *testing.T) {
	w := newWorld(t, &spec.Schedule{Cron: "0 1 * * *", TimeZone: "UTC", ConcurrencyPolicy: spec.ConcurrencyReplace}, "2026-05-01 00:00")
	earlier := w.time("2026-04-30 01:00")
	w.facts.runs = []Run{{Pod: "a", Scheduled: earlier}, {Pod: "b", Scheduled: earlier, Finished: true, deleting: true}}
	w.facts.now = w.time("2026-05-01 01:00")
	d := decide(&w.facts)
	if len(d.remove) != 1 || d.remove[0].Pod != "a" || !d.start.IsZero() || !d.since.Equal(w.facts.since) {
		t.Errorf("%+v", d)
	}
	w.facts.runs = []Run{{Pod: "a", Scheduled: earlier, deleting: true}}
	if d := decide(&w.facts); len(d.remove) != 0 || !d.start.IsZero() {
		t.Errorf("while it is being deleted: %+v", d)
	}
	w.facts.runs = nil
	if d := decide(&w.facts); d.start.IsZero() || !d.since.Equal(d.start) {
		t.Errorf("when it is deleted: %+v", d)
	}
}

// TestRequestedRuns: a run that a person has requested is not deleted, and no other one waits for it.
func TestRequestedRuns(t *testing.T) {
	for _, policy := range []spec.ConcurrencyPolicy{spec.ConcurrencyForbid, spec.ConcurrencyReplace} {
		w := newWorld(t, &spec.Schedule{Cron: "0 1 * * *", TimeZone: "UTC", ConcurrencyPolicy: policy}, "2026-05-01 00:00")
		w.facts.runs = []Run{{Pod: "a", Created: w.facts.now}}
		w.facts.now = w.time("2026-05-01 01:00")
		if d := decide(&w.facts); len(d.remove) != 0 || len(d.reports) != 0 || !d.start.Equal(w.facts.now) {
			t.Errorf("%s: %+v", policy, d)
		}
	}
}

// TestSuspend: as with a CronJob, the newest run that was missed starts when the suspension ends.
func TestSuspend(t *testing.T) {
	rule := spec.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin", Suspend: true}
	w := newWorld(t, &rule, "2026-05-01 04:00")
	w.until(w.time("2026-05-08 12:00"))
	if w.reason != api.ReasonSuspended || !w.next.IsZero() || len(w.starts) > 0 {
		t.Errorf("%s, next run at %v, runs %q", w.reason, w.next, w.starts)
	}
	rule.Suspend = false
	w.until(w.time("2026-05-08 13:00"))
	w.check([]string{"2026-05-08 12:00"}, []string{"2026-05-08 12:00 ScheduleMissed"})
	if want := w.time("2026-05-09 03:00"); !w.next.Equal(want) {
		t.Errorf("next run at %v, want %v", w.next, want)
	}
}

// TestDelay: a delay is part of the time at which a run is due, and not of the deadline.
func TestDelay(t *testing.T) {
	rule := spec.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin", StartingDeadlineSeconds: new(spec.Seconds(60))}
	w := newWorld(t, &rule, "2026-05-01 03:10")
	w.facts.delay = 20 * time.Minute
	w.until(w.time("2026-05-02 03:10"))
	w.until(w.time("2026-05-02 12:00"))
	w.check([]string{"2026-05-02 03:20"}, nil) // the time of the first day had passed
	if want := w.time("2026-05-03 03:20"); !w.next.Equal(want) {
		t.Errorf("next run at %v, want %v", w.next, want)
	}
}

// TestLoadedHost: a decision that is late does not miss a run, whatever its deadline. One after the host was suspended does.
func TestLoadedHost(t *testing.T) {
	for _, policy := range []spec.ConcurrencyPolicy{spec.ConcurrencyAllow, spec.ConcurrencyForbid, spec.ConcurrencyReplace} {
		rule := spec.Schedule{Cron: "0 3 * * *", TimeZone: "UTC", StartingDeadlineSeconds: new(spec.Seconds(1)), ConcurrencyPolicy: policy}
		for _, tc := range []struct {
			late   time.Duration
			starts bool
		}{{time.Minute, true}, {time.Hour, false}} {
			w := newWorld(t, &rule, "2026-05-01 02:00")
			w.until(w.time("2026-05-01 02:59"))
			w.facts.now = w.time("2026-05-01 03:00").Add(tc.late)
			if d := decide(&w.facts); !d.start.IsZero() != tc.starts || len(d.reports) > 0 == tc.starts {
				t.Errorf("%s, %v late: %+v", policy, tc.late, d)
			}
		}
	}
}

// TestReplaceDeadline: the deletion of the earlier run may take longer than the deadline of the one that replaces it.
func TestReplaceDeadline(t *testing.T) {
	w := newWorld(t, &spec.Schedule{
		Cron: "0 1 * * *", TimeZone: "UTC", ConcurrencyPolicy: spec.ConcurrencyReplace, StartingDeadlineSeconds: new(spec.Seconds(10)),
	}, "2026-05-01 00:00")
	w.facts.delay = time.Minute
	w.facts.runs = []Run{{Pod: "a", Scheduled: w.time("2026-04-30 01:00")}}
	w.facts.now = w.time("2026-05-01 01:01")
	d := decide(&w.facts)
	if len(d.remove) != 1 || d.waiting.IsZero() {
		t.Fatalf("%+v", d)
	}
	w.facts.waiting, w.facts.seen, w.facts.now = d.waiting, w.facts.now, w.facts.now.Add(30*time.Second)
	w.facts.runs[0].deleting = true
	if d := decide(&w.facts); len(d.reports) != 0 || !d.waiting.Equal(w.facts.waiting) || !d.again.After(w.facts.now) {
		t.Errorf("while it is being deleted: %+v", d)
	}
	w.facts.runs = nil
	if d := decide(&w.facts); d.start.IsZero() || len(d.reports) != 0 {
		t.Errorf("when it is deleted: %+v", d)
	}
}

func TestHistory(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 5, 1, 0, minute, 0, 0, time.UTC) }
	run := func(name string, minute int, phase lifecycle.Phase) Run {
		return Run{Pod: name, Scheduled: at(minute), Created: at(minute), Finished: phase != lifecycle.PhaseRunning, Phase: phase}
	}
	runs := []Run{
		run("a", 1, lifecycle.PhaseSucceeded), run("b", 2, lifecycle.PhaseFailed), run("c", 3, lifecycle.PhaseSucceeded),
		run("d", 4, lifecycle.PhaseFailed), run("e", 5, lifecycle.PhaseRunning), run("f", 6, lifecycle.PhaseSucceeded),
		run("g", 7, lifecycle.PhaseSucceeded), run("h", 8, lifecycle.PhaseFailed),
	}
	for i, name := range []string{"s", "t"} {
		stopped := run(name, i, lifecycle.PhaseFailed)
		stopped.Stopped = true
		runs = append(runs, stopped)
	}
	number := func(n int32) *int32 { return &n }
	for _, tc := range []struct {
		rule  spec.Schedule
		saved time.Time
		want  string
	}{
		{spec.Schedule{}, at(8), "dbas"},
		{spec.Schedule{SuccessfulJobsHistoryLimit: number(0), FailedJobsHistoryLimit: number(2)}, at(8), "gfcba"},
		{spec.Schedule{SuccessfulJobsHistoryLimit: number(0), FailedJobsHistoryLimit: number(0)}, at(3), "cbtas"},
		{spec.Schedule{SuccessfulJobsHistoryLimit: number(9), FailedJobsHistoryLimit: number(9)}, at(8), ""},
	} {
		f := facts{rule: &tc.rule, runs: runs, saved: tc.saved, now: at(9)}
		got := ""
		for _, r := range f.surplus(at(9)) {
			got += r.Pod
		}
		if got != tc.want {
			t.Errorf("with %+v, %q are deleted, want %q", tc.rule, got, tc.want)
		}
	}
}

// TestHistoryOfClockAhead: runs of a clock that was ahead are deleted before those of the clock that was corrected.
func TestHistoryOfClockAhead(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 5, day, 3, 0, 0, 0, time.UTC) }
	f := facts{rule: &spec.Schedule{}, saved: at(2), now: at(2).Add(time.Hour)}
	for _, day := range []int{1, 2, 10, 11, 12} {
		f.runs = append(f.runs, Run{
			Pod: at(day).Format("2"), Scheduled: at(day), Created: at(day), Finished: true, Phase: lifecycle.PhaseSucceeded,
		})
	}
	names := func(runs []Run) (list []string) {
		for _, r := range runs {
			list = append(list, r.Pod)
		}
		return list
	}
	if got, want := names(f.surplus(at(2))), []string{"11", "10"}; !slices.Equal(got, want) {
		t.Errorf("%q are deleted, want %q", got, want)
	}
	if got, want := names(inOrder(f.runs, f.now)), []string{"10", "11", "12", "1", "2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	f.loaded = true // one of them may have been started without being saved
	if got := names(f.surplus(at(2))); len(got) != 0 {
		t.Errorf("%q are deleted by a new daemon", got)
	}
}

// TestWorlds: whatever clocks, power and runs do, each leap starts at most one run beside those that are due.
func TestWorlds(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		rule := spec.Schedule{
			Cron:              []string{"* * * * *", "30 2 * * *", "0 */6 * * *", "15 1,2 * * 0"}[random.IntN(4)],
			TimeZone:          []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}[random.IntN(3)],
			ConcurrencyPolicy: []spec.ConcurrencyPolicy{"", spec.ConcurrencyForbid, spec.ConcurrencyReplace}[random.IntN(3)],
		}
		if random.IntN(2) == 0 {
			rule.StartingDeadlineSeconds = new(spec.Seconds(random.IntN(7200)))
		}
		w := newWorld(t, &rule, "2026-03-01 00:00")
		w.facts.delay = time.Duration(random.IntN(3600)) * time.Second
		allowed := 0
		for range 40 {
			w.takes = time.Duration(random.IntN(200)) * time.Minute
			from := w.facts.now
			switch random.IntN(4) {
			case 0: // forwards, or back
				w.leap(from.Add(time.Duration(random.Int64N(int64(200*24*time.Hour))) - 100*24*time.Hour))
			case 1:
				w.leap(time.Unix(random.Int64N(1e6), 0))
			case 2:
				w.leap(w.time("2026-03-01 00:00").Add(time.Duration(random.Int64N(int64(400 * 24 * time.Hour)))))
			}
			allowed++
			from = w.facts.now
			w.until(from.Add(time.Duration(random.IntN(300)) * time.Minute))
			times, end := w.facts.times, w.facts.now.Add(-w.facts.delay)
			for at := times.Next(from.Add(-w.facts.delay)); !at.After(end); at = times.Next(at) {
				allowed++
			}
			if len(w.starts) > allowed {
				t.Fatalf("seed %d: %d runs have started, at most %d may have: %q", seed, len(w.starts), allowed, w.starts)
			}
		}
	}
}
