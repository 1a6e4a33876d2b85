package lifecycle

// Replacement is a request to replace the run of a container by another one, whatever its restart policy.
type Replacement struct {
	Attempt int    `json:"attempt,omitempty"` // the newest run that is replaced; 0: none
	Reason  Reason `json:"reason,omitempty"`
}

// ContainerRestartRequested requests to restart one container. A running one is stopped with its preStop hook and grace period.
// The next run starts without a delay. The stopped run does not count as failed. Of an init container, only a run that has not
// completed is replaced. It changes nothing for an ephemeral container, and for a run that is being replaced already.
type ContainerRestartRequested struct {
	Container string
	By        string // who requested it, as shown in the event
	At        Instant
}

func (e ContainerRestartRequested) apply(f *Facts) { f.replace(e.Container, ReasonRestartRequested) }

// replace requests to replace the newest run of a container.
func (f *Facts) replace(name string, why Reason) {
	c, known := f.Containers[name]
	if !known || f.ephemeral(name) {
		return
	}
	if c.Replaced.Attempt < c.Newest.N() {
		c.Replaced = Replacement{Attempt: c.Newest.N(), Reason: why}
	}
	c.resetDelays()
	f.Containers[name] = c
}

// mustStop returns why the newest run of a container must stop although its pod continues; empty if it need not.
func (c *Container) mustStop() Reason {
	if why := c.Newest.mustStop(); why != "" {
		return why
	}
	if c.Newest.N() <= c.Replaced.Attempt {
		return c.Replaced.Reason
	}
	return ""
}

// superseded reports whether another run follows a run whatever its exit and its restart policy: all containers, the pod or the
// container are restarted.
func (f *Facts) superseded(a *Attempt) bool {
	if a.N() == 0 || f.ephemeral(a.Container) {
		return false
	}
	return f.wasReset(a) || a.Round < f.Again || f.Restart.pending() || a.N() <= f.Containers[a.Container].Replaced.Attempt
}

// interrupted reports whether a run was stopped to be replaced. Whatever its exit code, it has neither completed nor failed.
func (a *Attempt) interrupted() bool {
	return a.StopReason == ReasonRestartRequested || a.StopReason == ReasonDefinitionChanged || a.StopReason == ReasonContainerRemoved
}
