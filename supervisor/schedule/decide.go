package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// facts are all that a decision depends on.
type facts struct {
	rule  *spec.Schedule
	times times
	// since is the time up to which runs were started or left out. It is that of a clock that is not set if the schedule was created then.
	since time.Time
	// saved is since, as it is on the disk.
	saved time.Time
	// ahead is the time up to which runs were started before the clock was set back; zero: the clock has passed it. If the clock was wrong
	// before, these times come again. If it is wrong now, as after a boot without a real-time clock, they do not.
	ahead time.Time
	// loaded is set until the first decision of a daemon by a clock that is set. The daemon before may have started runs after since.
	loaded bool
	// delay is that of the runs, see [spec.Schedule].
	delay time.Duration
	runs  []Run     // the oldest first
	now   time.Time // wall clock
	// seen is the wall clock of the previous decision of this daemon; zero: there is none.
	seen time.Time
	// waiting is the run that was reported to wait for an earlier one; zero: none.
	waiting time.Time
}

// times are those of a schedule. [*calendar.Calendar] implements it.
type times interface {
	// Next returns the first time after t.
	Next(t time.Time) time.Time
	// Last returns the last time after from and not after until; zero: there is none.
	Last(from, until time.Time) time.Time
}

// Run is a pod of a schedule.
type Run struct {
	Pod, UID string
	// Scheduled is the time of the schedule; zero: a person has requested the run.
	Scheduled time.Time
	Created   time.Time // wall clock
	Finished  bool      // nothing of it runs
	Ended     time.Time // wall clock; zero: it has not finished, or a client has stopped it
	Phase     lifecycle.Phase
	Stopped   bool             // a person has stopped it before it was finished
	Waiting   lifecycle.Reason // why a container does not run yet, or waits for its restart; empty: none waits
	deleting  bool
}

// Succeeded reports whether the run has succeeded.
func (r *Run) Succeeded() bool { return r.Finished && r.Phase == lifecycle.PhaseSucceeded }

// Failed reports whether the run has failed. One that a person has stopped has not.
func (r *Run) Failed() bool { return r.Finished && r.Phase != lifecycle.PhaseSucceeded && !r.Stopped }

// decision is what the facts require.
type decision struct {
	// since is the new value of that of the facts. It is saved after the start.
	since   time.Time
	ahead   time.Time // the new value of that of the facts, saved with since
	found   time.Time // scheduled time of the newest run, which an earlier daemon has started without saving it; zero: none
	waiting time.Time
	start   time.Time // scheduled time of the run to be started; zero: none
	missed  time.Time // scheduled time of the run whose deadline has passed; zero: none
	remove  []Run     // to be deleted
	reports []report
	reason  api.Reason // of the status of the schedule
	next    time.Time  // when the next run is due; zero: no run is planned
	again   time.Time  // when to decide again, if nothing changes before; zero: never
}

// report is an event of the schedule.
type report struct {
	kind   api.EventKind
	fields event.Fields
}

const (
	// correction is the least difference by which a clock that goes back was wrong before: the times since then come again. After a smaller
	// one no run is repeated. It is that of cron(8).
	correction = 3 * time.Hour
	// clockSetYear is the first year that a clock that was set can show. This code is younger.
	clockSetYear = 2026
	// leap is the least time between two decisions in which the clock was set or the host was suspended. Otherwise decisions are at most
	// maxSleep apart, and what a loaded host needs.
	leap = 5 * time.Minute
)

// decide decides which run starts now, which ones are deleted, and when the next one is due. It is a pure function.
//
//	the clock of the host is not set                        nothing starts
//	the schedule was created before the clock was set       times up to now are left out
//	the clock went back by more than [correction]           times up to now are left out
//	the clock was set forwards to where it was before       times that were started before are left out
//	a daemon was killed after a start                       times up to that of the newest run are left out
//	suspended                                               nothing starts
//	a time has passed since the last run                    the newest such time is due, the earlier ones are left out
//	due, for longer than startingDeadlineSeconds            left out, unless the delay is that of this daemon
//	due, an earlier run is running, Forbid                  waits for the end of that run
//	due, an earlier run is running, Replace                 deletes that run; due again when it is gone
//	due, a run of the same time exists                      deletes that run, if it has finished; due again when it is gone
//	due                                                     starts
//
// Whatever the clock does, a decision starts at most one run, and the time up to which runs are done with increases with each.
func decide(f *facts) decision {
	d := decision{since: f.since, ahead: f.ahead, reason: api.ReasonScheduled}
	if !clockSet(f.now) {
		d.reason, d.remove = api.ReasonClockNotSet, f.surplus(d.since)
		return d
	}
	f.followClock(&d)
	d.remove = f.surplus(d.since)
	if f.rule.Suspend {
		d.reason = api.ReasonSuspended
		return d
	}
	clock := f.now.Add(-f.delay) // the times of the calendar are due by this clock
	f.due(&d, clock)
	d.next = f.times.Next(latest(d.since, clock)).Add(f.delay)
	if d.again.IsZero() || d.next.Before(d.again) {
		d.again = d.next
	}
	return d
}

// clockSet reports whether a time can be that of a clock that was set.
func clockSet(t time.Time) bool { return t.Year() >= clockSetYear }

// followClock sets up to when runs are done with, by the clock that the host has now.
func (f *facts) followClock(d *decision) {
	if !clockSet(d.since) {
		d.since = f.now
	}
	if f.since.Sub(f.now) > correction {
		d.reports = append(d.reports, report{api.EventScheduleClockSetBack, event.Fields{"time": timeText(f.since)}})
		d.since, d.ahead = f.now, latest(f.since, newest(f.runs))
	}
	if !d.ahead.IsZero() && !f.now.Before(d.ahead) {
		if !f.watched() {
			d.since = latest(d.since, d.ahead)
		}
		d.ahead = time.Time{}
	}
	if f.loaded {
		past := slices.DeleteFunc(slices.Clone(f.runs), func(r Run) bool { return r.Scheduled.After(f.now) })
		if at := newest(past); at.After(d.since) {
			d.since, d.found = at, at
		}
	}
}

// watched reports whether the time since the previous decision has passed, and was not skipped.
func (f *facts) watched() bool { return f.now.Sub(f.seen) < leap }

// newest returns the newest time of the schedule of runs; zero: there is none.
func newest(runs []Run) (at time.Time) {
	for i := range runs {
		at = latest(at, runs[i].Scheduled)
	}
	return at
}

// due decides what happens to the newest time that has passed.
func (f *facts) due(d *decision, clock time.Time) {
	due := f.times.Last(d.since, clock)
	if due.IsZero() {
		return
	}
	active := f.active()
	deadline := due.Add(f.delay)
	late := f.late(deadline)
	if f.rule.StartingDeadlineSeconds != nil {
		deadline = deadline.Add(f.rule.StartingDeadlineSeconds.Duration())
	}
	policy := f.rule.Policy()
	switch {
	case f.rule.StartingDeadlineSeconds != nil && f.now.After(deadline) && late:
		f.miss(d, due)
		d.since, d.missed = due, due
		return
	case len(active) > 0 && policy == spec.ConcurrencyForbid:
		d.waiting, d.reason = due, api.ReasonRunActive
		if !f.waiting.Equal(due) {
			d.reports = append(d.reports, report{api.EventScheduleWaiting, event.Fields{"run": active[0].Pod, "time": timeText(due)}})
		}
	case len(active) > 0 && policy == spec.ConcurrencyReplace:
		d.waiting, d.reason = due, api.ReasonRunActive
		for _, r := range active {
			if !r.deleting {
				d.remove = append(d.remove, r)
			}
		}
	case f.same(due) != nil: // of a clock that was ahead
		d.waiting, d.reason = due, api.ReasonRunActive
		if same := f.same(due); !same.deleting {
			d.remove = append(d.remove, *same)
		}
	default:
		if before := f.times.Last(d.since, due.Add(-time.Nanosecond)); !before.IsZero() {
			f.miss(d, before)
		}
		d.start, d.since = due, due
		return
	}
	if f.rule.StartingDeadlineSeconds != nil && policy == spec.ConcurrencyForbid {
		d.again = deadline.Add(time.Nanosecond)
	}
}

// late reports whether a run that is due since a time may miss its deadline. It may not if the time has passed since the previous decision,
// which a loaded host makes late, or if an earlier run was deleted for it.
func (f *facts) late(since time.Time) bool {
	seen := since.After(f.seen) && f.watched()
	replaces := f.rule.Policy() != spec.ConcurrencyForbid && f.waiting.Equal(since.Add(-f.delay))
	return !seen && !replaces
}

// miss reports the times up to last that are left out.
func (f *facts) miss(d *decision, last time.Time) {
	fields := event.Fields{"first": timeText(f.times.Next(d.since)), "last": ""}
	if text := timeText(last); text != fields["first"] {
		fields["last"] = " to " + text
	}
	d.reports = append(d.reports, report{api.EventScheduleMissed, fields})
}

// same returns the run of a time, if it does not run; nil: there is none.
func (f *facts) same(at time.Time) *Run {
	i := slices.IndexFunc(f.runs, func(r Run) bool { return r.Scheduled.Equal(at) && (r.Finished || r.deleting) })
	if i < 0 {
		return nil
	}
	return &f.runs[i]
}

// active returns the runs that have not finished, or are still being deleted. Those that a person has requested are not among them, as the
// Job that `kubectl create job --from` creates is none of those that a CronJob waits for.
func (f *facts) active() (list []Run) {
	for _, r := range f.runs {
		if !r.Scheduled.IsZero() && (!r.Finished || r.deleting) {
			list = append(list, r)
		}
	}
	return list
}

// surplus returns the finished runs beyond the limits. Those that a person has stopped are counted apart, with the limit of those that
// failed. Since is the time up to which runs are done with. A run is kept until that time is saved: its name tells the next daemon that it
// was started.
func (f *facts) surplus(since time.Time) (list []Run) {
	successful, failed := f.rule.History()
	stopped := failed
	for _, r := range slices.Backward(inOrder(f.runs, f.now)) {
		unsaved := r.Scheduled.After(f.saved) && (f.loaded || !r.Scheduled.After(since))
		left := &stopped
		switch {
		case r.Succeeded():
			left = &successful
		case r.Failed():
			left = &failed
		}
		switch {
		case !r.Finished || r.deleting:
		case *left > 0:
			*left--
		case !unsaved:
			list = append(list, r)
		}
	}
	return list
}

// inOrder returns runs, the oldest first. Those that are newer than the clock were created while it was ahead: they are older than others.
func inOrder(runs []Run, now time.Time) []Run {
	later := func(r Run) int {
		if r.Created.After(now) {
			return 0
		}
		return 1
	}
	return order.Sorted(slices.Values(runs), func(a, b Run) int {
		return cmp.Or(cmp.Compare(later(a), later(b)), a.Created.Compare(b.Created))
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// timeText is a time as events have it, in the zone of the host.
func timeText(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -0700") }
