package lifecycle

import (
	"cmp"
	"slices"

	"github.com/podstead/podstead/spec"
)

// Unresolved returns the actions that were issued and have no outcome, in a fixed order: after a crash of the
// supervisor each may or may not have happened, and each is carried out again. What was to be told to a process (the
// stop signal, SIGKILL) keeps its deadline. This is the recovery table of docs/design/recovery.md.
func (f Facts) Unresolved() []Action {
	var todo []Action
	if f.Sandbox.inFlight() {
		todo = append(todo, StartSandbox{Sandbox: f.Sandbox.N, Round: f.Round})
	}
	if f.Sandbox.Removal.pending() {
		todo = append(todo, RemoveSandbox{Sandbox: f.Sandbox.N})
	}
	for _, name := range f.names() {
		c := f.Containers[name]
		if c.Pull.inFlight() {
			todo = append(todo, PullImage{Container: name, For: c.Pull.For, Level: c.Pull.Next})
			if !c.Pull.Cancelled.IsZero() {
				todo = append(todo, CancelPull{Container: name, For: c.Pull.For})
			}
		}
		if a := &c.Newest; a.live() {
			if a.PostStart.inFlight() && a.PostStart.Cancelled.IsZero() {
				todo = append(todo, RunPostStart{Ref: a.Ref})
			}
			if a.PreStop.inFlight() && a.PreStop.Cancelled.IsZero() {
				todo = append(todo, RunPreStop{Ref: a.Ref, Limit: a.PreStop.Limit, Reason: a.StopReason})
			}
			switch {
			case a.Started.IsZero() && a.Retry.IsZero():
				todo = append(todo, StartContainer{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts})
			case !a.Unsent.IsZero(): // it has its outcome, and is sent again when it is time
			case !a.KillAsked.IsZero() && a.KillSent.IsZero():
				todo = append(todo, KillContainer{Ref: a.Ref})
			case !a.StopAsked.IsZero() && a.StopSent.IsZero():
				todo = append(todo, StopContainer{Ref: a.Ref, Grace: a.StopGrace, Reason: a.StopReason})
			}
		}
		for _, a := range [...]*Attempt{&c.Previous, &c.Newest} {
			if a.Removal.pending() {
				todo = append(todo, RemoveContainer{Ref: a.Ref})
			}
		}
	}
	if f.Removal.pending() {
		todo = append(todo, RemovePod{})
	}
	return todo
}

// Live returns the runs whose process may exist and was seen to start, sorted by name: after a restart of the
// supervisor each has to be waited for again.
func (f Facts) Live() []Ref {
	var refs []Ref
	for _, name := range f.names() {
		if a := f.Containers[name].Newest; a.running() {
			refs = append(refs, a.Ref)
		}
	}
	return refs
}

// Signalled returns the stop signals that were sent to what runs, sorted by container, as the events that tell of it: what a
// supervisor keeps until the next boot, so that the next one sends none of them again.
func (f Facts) Signalled() []SignalSent {
	var list []SignalSent
	for _, name := range f.names() {
		if a := f.Containers[name].Newest; a.running() && !a.StopSent.IsZero() {
			list = append(list, SignalSent{Ref: a.Ref, At: a.StopSent})
		}
	}
	return list
}

// SandboxReady returns the number of the sandbox that containers run in, or 0 while there is none.
func (f Facts) SandboxReady() int {
	if f.Sandbox.ready() {
		return f.Sandbox.N
	}
	return 0
}

// names returns the names of the known containers, sorted.
func (f Facts) names() []string {
	names := make([]string, 0, len(f.Containers))
	for name := range f.Containers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Found is what the engine holds of a pod, told by the labels of what it holds.
type Found struct {
	UID     string
	Pod     *spec.Pod // the definition that the newest container was made from; nil if there is none
	Sandbox int       // the newest sandbox's number; 0: none is known
	Ready   bool      // it is there
	IPs     []string
	Runs    []Run // in any order
}

// rounds returns the first and the newest round of the runs in a sandbox; 0: it has none.
func (f Found) rounds(sandbox int) (first, newest int) {
	for _, r := range f.Runs {
		if r.Sandbox == sandbox {
			first, newest = min(cmp.Or(first, r.Round), r.Round), max(newest, r.Round)
		}
	}
	return first, newest
}

// Run is a container that the engine holds.
type Run struct {
	StartContainer
	ID      string
	Image   string
	ImageID string
	// Architecture is that of the image; empty: not known.
	Architecture string
}

// CatchUp folds in what the engine holds and the facts do not know of: ephemeral containers, and sandboxes and runs newer than their newest. For a
// pod whose own record is lost these are all, and the facts begin with no more than a UID and an instant. How long ago
// anything was is not known, so it is as of now; what has ended is found out by waiting for it, as after any restart.
func (f Facts) CatchUp(found Found, now Instant) Facts {
	if found.Pod != nil {
		for _, c := range found.Pod.EphemeralContainers {
			f = f.Apply(EphemeralAdded{Container: c, At: now})
		}
	}
	sandbox := found.Sandbox
	for _, r := range found.Runs {
		sandbox = max(sandbox, r.Sandbox)
	}
	first, newest := found.rounds(sandbox)
	if sandbox > f.Sandbox.N {
		f = f.Apply(Issued{Action: StartSandbox{Sandbox: sandbox, Round: max(f.Round+1, first)}, At: now})
		if found.Ready && found.Sandbox == sandbox {
			f = f.Apply(SandboxStarted{Sandbox: found.Sandbox, IPs: found.IPs, At: now})
		} else {
			f = f.Apply(SandboxLost{Sandbox: sandbox, Message: "the sandbox was not found", At: now})
		}
	}
	if newest > f.Round { // all containers were restarted in it
		f = f.Apply(Issued{Action: BeginRound{Round: newest}, At: now})
	}
	runs := slices.SortedFunc(slices.Values(found.Runs), func(a, b Run) int { return cmp.Compare(a.Attempt, b.Attempt) })
	for _, r := range runs {
		newest := f.Containers[r.Container].Newest
		if r.Attempt <= newest.N() {
			continue
		}
		if newest.live() { // its successor would not be there
			f = f.Apply(ContainerExited{Ref: newest.Ref, Exit: Exit{Code: 137, Reason: ReasonStatusUnknown}, At: now})
		}
		f = f.Apply(Issued{Action: r.StartContainer, At: now})
		f = f.Apply(ContainerStarted{Ref: r.Ref, ID: r.ID, Image: r.Image, ImageID: r.ImageID, Architecture: r.Architecture, At: now})
	}
	return f
}

// AtRest reports whether nothing of the pod runs, is under way, or stands: no process, no pull, no sandbox.
func (f Facts) AtRest() bool {
	for _, c := range f.Containers {
		if c.Newest.live() || c.Pull.inFlight() {
			return false
		}
	}
	return !f.Sandbox.standing()
}
