package lifecycle

// ReasonFirstStart is the cause of a container's first run.
const ReasonFirstStart Reason = "FirstStart"

// Opened is why the present round began. It outlives the sandbox that was lost, and the supervisor that saw it.
type Opened struct {
	Round   int     `json:"round"`
	Reason  Reason  `json:"reason,omitempty"`  // FirstStart, SandboxChanged or RestartingAllContainers
	Message string  `json:"message,omitempty"` // what became of the sandbox before, in the engine's words
	By      Ref     `json:"by,omitzero"`       // of RestartingAllContainers: the run whose end asked for it
	At      Instant `json:"at,omitzero"`
}

// Cause is why a run began.
type Cause struct {
	// Reason is FirstStart; of a new round SandboxChanged or RestartingAllContainers; of a run that was ended
	// LivenessProbe, StartupProbe or FailedPostStartHook; else the reason of its exit, such as Completed or OOMKilled.
	Reason  Reason
	Message string  // of the probe, the hook, the exit or the engine
	By      Ref     // the run whose end is the cause; zero where it is none's
	Exit    Exit    // how that ended, as far as it is known
	At      Instant // when
}

// Why returns why the newest run of a container began, and the zero Cause if there is none. It needs nothing but what
// outlives a supervisor.
func (f Facts) Why(container string) Cause {
	c := f.Containers[container]
	newest, before := &c.Newest, &c.Previous
	switch {
	case !newest.ran():
		return Cause{}
	case before.N() == 0:
		return Cause{Reason: ReasonFirstStart, At: newest.Asked}
	case before.Round == newest.Round:
		return endOf(before)
	case f.Opened.Round != newest.Round: // of an earlier round: what opened it is not known any more
		return Cause{Reason: ReasonSandboxChanged, At: newest.Asked}
	}
	cause := Cause{Reason: f.Opened.Reason, Message: f.Opened.Message, By: f.Opened.By, At: f.Opened.At}
	for _, other := range f.Containers {
		for _, a := range [...]*Attempt{&other.Newest, &other.Previous} {
			if a.Ref == cause.By {
				cause.Exit = a.Exit
			}
		}
	}
	return cause
}

// endOf is a run's end as a cause.
func endOf(a *Attempt) Cause {
	cause := Cause{Reason: a.Exit.Reason, Message: a.Exit.Message, By: a.Ref, Exit: a.Exit, At: a.Exited}
	for reason, message := range map[Reason]string{
		ReasonLivenessProbe:       a.Probes.Liveness.Message,
		ReasonStartupProbe:        a.Probes.Startup.Message,
		ReasonFailedPostStartHook: a.PostStart.Message,
	} {
		if a.StopReason == reason {
			cause.Reason, cause.Message = reason, message
		}
	}
	return cause
}
