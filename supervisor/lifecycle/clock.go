package lifecycle

import (
	"maps"
	"time"
)

// Booted reports that the host was rebooted after the facts were saved, so sandboxes and processes no longer exist. Every
// instant is moved into the current boot as if no time had passed between the two boots, so that a back-off continues with the
// rest of its delay. The same holds for the age of the pod, which activeDeadlineSeconds limits: the only clock that continued is
// the wall clock, which may be years off when a host boots. A reboot is not a crash and delays no restart. Saved is the last known
// instant of the earlier boot.
type Booted struct {
	Saved Instant
	At    Instant
	// Unclean is set if the earlier boot ended without a shutdown of the host.
	Unclean bool
}

// message is the message of what the reboot ended.
func (e Booted) message() string {
	if e.Unclean {
		return "the host stopped without a shutdown"
	}
	return "the host was rebooted"
}

func (e Booted) apply(f *Facts) {
	f.rebase(func(t *Instant) {
		if !t.IsZero() {
			since := min(t.Mono-e.Saved.Mono, 0)
			*t = Instant{Boot: e.At.Boot, Mono: e.At.Mono + since, Wall: t.Wall}
		}
	})
	for _, c := range f.Containers {
		if c.Newest.live() {
			c.Backoff = Backoff{}
			c.Newest.Exited, c.Newest.Exit = e.At, Exit{Code: 255, Reason: ReasonUnknown, Message: e.message()}
		}
		if c.Pull.inFlight() {
			c.Pull.Requested = Instant{}
		}
	}
	f.Wait = Wait{N: f.Wait.N} // the conditions are checked again
	f.Escalation = Escalation{}
	f.Trial.booted(e.At)
	if f.Sandbox.mayExist() {
		set(&f.Sandbox.Lost, e.At)
		f.Sandbox.Message = e.message()
	}
}

// SetBack moves every instant by the difference of two readings of the clock in one boot, of which the later reading shows less. That
// happens if the daemon is restored from a snapshot or started in another time namespace. The difference counts as no time, so that a
// back-off continues with the rest of its delay.
func (f Facts) SetBack(saved, now Instant) Facts {
	f.ownAll()
	f.rebase(func(t *Instant) { *t = t.SetBack(saved, now) })
	return f
}

// rebase applies move to every instant of the facts.
func (f *Facts) rebase(move func(*Instant)) {
	removal := func(r *Removal) { move(&r.Requested); move(&r.Failed); move(&r.Done) }
	attempt := func(a *Attempt) {
		for _, t := range []*Instant{
			&a.Requested, &a.Retry, &a.Started, &a.CreateFailed, &a.TerminationRequested, &a.StopRequested, &a.StopSent,
			&a.KillRequested, &a.KillSent, &a.SignalFailed, &a.Exited, &a.DeviceAdded,
		} {
			move(t)
		}
		for _, h := range []*Hook{&a.PostStart, &a.PreStop} {
			for _, t := range []*Instant{&h.Requested, &h.Retry, &h.Cancelled, &h.Done} {
				move(t)
			}
		}
		for _, p := range []*ProbeStatus{&a.Probes.Startup, &a.Probes.Liveness, &a.Probes.Readiness} {
			move(&p.At)
		}
		removal(&a.Removal)
	}
	for _, t := range []*Instant{
		&f.Accepted, &f.Stop.Requested, &f.Stop.Deadline,
		&f.Sandbox.Requested, &f.Sandbox.Ready, &f.Sandbox.Lost, &f.Sandbox.Failed, &f.RestartedAt, &f.EngineUnavailable,
		&f.Restart.Requested, &f.AgainAt,
		&f.Wait.Since, &f.Wait.Ended, &f.Collection.Requested, &f.Resize.Requested, &f.Resize.Failed, &f.Resize.Done,
		&f.Job.Ended,
	} {
		move(t)
	}
	f.Escalation.rebase(move)
	f.Trial.rebase(move)
	f.Conditions = maps.Clone(f.Conditions)
	for name, c := range f.Conditions {
		move(&c.At)
		f.Conditions[name] = c
	}
	f.Wait.Conditions = maps.Clone(f.Wait.Conditions)
	for name, c := range f.Wait.Conditions {
		move(&c.Met)
		f.Wait.Conditions[name] = c
	}
	removal(&f.Sandbox.Removal)
	removal(&f.Removal)
	removal(&f.Collection.Removal)
	for _, c := range f.Containers {
		attempt(&c.Newest)
		attempt(&c.Previous)
		for _, t := range []*Instant{
			&c.Pull.Requested, &c.Pull.Cancelled, &c.Pull.Done, &c.Pull.Failed, &c.Pull.Checked, &c.Pull.Retry, &c.Backoff.Granted,
		} {
			move(t)
		}
	}
}

// clockTolerance is the least change of the wall clock that is corrected. The readings of the two clocks in an instant are up to some
// milliseconds apart, or more on a loaded host. A synchronized clock is slewed, which CLOCK_BOOTTIME follows, and not set.
const clockTolerance = time.Second

// WallClockSet reports that the wall clock was set, as a host without a battery-backed clock does when it gets the time. The wall times
// of the boot that were recorded before are corrected. Nothing else changes: decisions do not use the wall clock. Before and At are
// readings of the clock before and after the change.
type WallClockSet struct{ Before, At Instant }

func (e WallClockSet) apply(f *Facts) {
	f.rebase(func(t *Instant) {
		if t.Boot == e.Before.Boot && within(t.Step(e.Before), clockTolerance) {
			t.Wall = e.At.Add(t.Sub(e.At)).Wall
		}
	})
}

// Step returns by how much the wall clock was set between two readings of one boot.
func (t Instant) Step(u Instant) time.Duration {
	return t.wall().Sub(u.wall()) - t.Sub(u)
}

// wall returns the reading of the wall clock without the monotonic reading of package time.
func (t Instant) wall() time.Time { return t.Wall.Round(0) }

// Set reports whether the wall clock was set between two readings.
func (t Instant) Set(u Instant) bool { return t.Boot == u.Boot && !within(t.Step(u), clockTolerance) }

func within(d, limit time.Duration) bool { return -limit < d && d < limit }

// Correct corrects the transition times of conditions that lie in this boot. The earlier conditions do not change.
func (e WallClockSet) Correct(list []Condition) []Condition {
	corrected := make([]Condition, len(list))
	booted := e.Before.Add(-e.Before.Mono).Wall.Add(-clockTolerance) // transition times are in whole seconds
	for i, c := range list {
		if t := c.LastTransitionTime; !t.Before(booted) && !t.After(e.Before.Wall) {
			c.LastTransitionTime = t.Add(e.At.Step(e.Before)).Truncate(time.Second)
		}
		corrected[i] = c
	}
	return corrected
}
