package lifecycle

// Restart is a request of a person to stop all containers and start the pod again. It is pending until everything has stopped.
type Restart struct {
	Requested Instant `json:"requested,omitzero"`
	By        string  `json:"by,omitempty"` // who requested it, as shown in the event
	// Redefined is set if the definition of the pod changed in a way that only a new sandbox can carry out.
	Redefined bool `json:"redefined,omitempty"`
}

// pending reports whether a restart was requested and the containers are still being stopped.
func (r *Restart) pending() bool { return !r.Requested.IsZero() }

// RestartRequested requests to start the pod again in a new round, after everything that still runs has stopped. It replaces a
// request to stop the pod. It changes nothing if the pod is being deleted or if a restart is pending.
type RestartRequested struct {
	By        string
	Redefined bool // see [Restart]
	At        Instant
}

func (e RestartRequested) apply(f *Facts) {
	if f.Stop.Delete || f.Restart.pending() {
		return
	}
	f.Stop, f.Escalation = Stop{}, Escalation{}
	f.Restart = Restart{Requested: e.At, By: e.By, Redefined: e.Redefined}
}

// StartAgain opens a round after everything of the pod has stopped for a [RestartRequested]. Every container runs again, init
// containers too, and no delay of an earlier failure applies. Restart counts continue. See [RecordOnly].
type StartAgain struct{ Round int }

func (a StartAgain) issued(f *Facts, at Instant) {
	f.Round, f.Again, f.AgainAt, f.Restart = a.Round, a.Round, at, Restart{}
	f.Sandbox.Failures, f.Wait = 0, Wait{N: f.Wait.N} // the conditions are checked again
	f.Trial.startAgain()
	for name, c := range f.Containers {
		if !f.ephemeral(name) {
			c.resetDelays()
			f.Containers[name] = c
		}
	}
}

func (StartAgain) failed(*Facts, Failure, Instant) {}

// resetDelays ends the back-off of restarts and of pulls.
func (c *Container) resetDelays() {
	c.Backoff = Backoff{}
	if !c.Pull.inFlight() && c.Pull.Done.IsZero() {
		c.Pull = Pull{}
	}
}

// restartPod stops everything for a requested restart of the pod and opens a new round. It reports whether one is pending. The
// sandbox is replaced: its shim and its network start again with the pod, with the definition that the pod has then.
func (p *plan) restartPod() bool {
	if !p.facts.Restart.pending() {
		return false
	}
	why := ReasonRestartRequested
	if p.facts.Restart.Redefined {
		why = ReasonDefinitionChanged
	}
	if p.cancelPulls()+p.stopAll(why) > 0 {
		return true
	}
	switch s := &p.facts.Sandbox; {
	case s.inFlight():
	case s.mayExist():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	default:
		p.do(StartAgain{Round: p.facts.Round + 1})
	}
	return true
}

// activeSince returns the instant from which activeDeadlineSeconds counts.
func (f *Facts) activeSince() Instant {
	if f.AgainAt.IsZero() {
		return f.Accepted
	}
	return f.AgainAt
}
