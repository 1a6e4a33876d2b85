package lifecycle

// Booted says that the machine has been started anew since the facts were saved: sandboxes and processes are gone.
// Every instant is moved into the present boot as if the machine had not been off, so that a backoff waits for the rest
// of its delay; but the pod has grown older by what the wall clock says, the only one that went on. That the machine ended what ran
// is no crash, and delays no restart. Saved is the last instant of the earlier boot that is known.
type Booted struct {
	Saved Instant
	At    Instant
}

func (e Booted) apply(f *Facts) {
	f.rebase(func(t *Instant) {
		if !t.IsZero() {
			since := min(t.Mono-e.Saved.Mono, 0)
			*t = Instant{Boot: e.At.Boot, Mono: e.At.Mono + since, Wall: t.Wall}
		}
	})
	if !f.Accepted.IsZero() {
		f.Accepted.Mono -= max(e.At.Wall.Sub(e.Saved.Wall), 0)
	}
	for name, c := range f.Containers {
		if c.Newest.live() {
			c.Backoff = Backoff{}
			c.Newest.Exited, c.Newest.Exit = e.At, Exit{Code: 255, Reason: ReasonUnknown, Message: "the machine was restarted"}
		}
		if c.Pull.inFlight() {
			c.Pull.Requested = Instant{}
		}
		f.Containers[name] = c
	}
	if f.Sandbox.standing() {
		set(&f.Sandbox.Lost, e.At)
		f.Sandbox.Message = "the machine was restarted"
	}
}

// rebase moves every instant of the facts.
func (f *Facts) rebase(move func(*Instant)) {
	removal := func(r *Removal) { move(&r.Requested); move(&r.Failed); move(&r.Done) }
	attempt := func(a *Attempt) {
		for _, t := range []*Instant{
			&a.Requested, &a.Retry, &a.Started, &a.CreateFailed, &a.TerminationRequested, &a.StopRequested, &a.StopSent, &a.KillRequested, &a.KillSent, &a.SignalFailed,
			&a.Exited,
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
	} {
		move(t)
	}
	removal(&f.Sandbox.Removal)
	removal(&f.Removal)
	for name, c := range f.Containers {
		attempt(&c.Newest)
		attempt(&c.Previous)
		for _, t := range []*Instant{
			&c.Pull.Requested, &c.Pull.Cancelled, &c.Pull.Done, &c.Pull.Failed, &c.Pull.Checked, &c.Pull.Retry, &c.Backoff.Granted,
		} {
			move(t)
		}
		f.Containers[name] = c
	}
}
