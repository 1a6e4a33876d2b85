package lifecycle

import (
	"cmp"
	"slices"

	"github.com/podstead/podstead/spec"
)

// Unresolved returns the actions that were issued and have no outcome, in a fixed order. After a crash of the supervisor each of
// them may have happened or not, so each is carried out again, except for [RebootHost], which the supervisor records as failed: the
// pod may be ready by then. A [ResizePod] is not one of them, see [ResizeInterrupted]. The deadlines of stop signals and SIGKILL are
// unchanged. This implements the recovery table of docs/design/recovery.md.
func (f Facts) Unresolved() []Action {
	var todo []Action
	if f.Sandbox.inFlight() {
		todo = append(todo, StartSandbox{Sandbox: f.Sandbox.N, Round: f.Round})
	}
	if f.Sandbox.Removal.pending() {
		todo = append(todo, RemoveSandbox{Sandbox: f.Sandbox.N})
	}
	for _, name := range f.names() {
		c := f.Container(name)
		if c.Pull.inFlight() {
			todo = append(todo, PullImage{Container: name, For: c.Pull.For, Level: c.Pull.Next, Image: c.Image, Imported: f.imported()})
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
				todo = append(todo, StartContainer{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts, ImageID: c.Image.ID})
			case !a.SignalFailed.IsZero(): // it has an outcome; Decide sends the signal again when the retry is due
			case !a.KillRequested.IsZero() && a.KillSent.IsZero():
				todo = append(todo, KillContainer{Ref: a.Ref})
			case !a.StopRequested.IsZero() && a.StopSent.IsZero():
				todo = append(todo, StopContainer{Ref: a.Ref, Grace: a.StopGrace, Reason: a.StopReason})
			}
		}
		for _, a := range [...]*Attempt{&c.Previous, &c.Newest} {
			if a.Removal.pending() {
				todo = append(todo, RemoveContainer{Ref: a.Ref})
			}
		}
	}
	if f.Collection.Removal.pending() {
		todo = append(todo, CollectPod{})
	}
	if f.Escalation.Reboot.pending() {
		todo = append(todo, RebootHost{})
	}
	if f.Removal.pending() {
		todo = append(todo, RemovePod{})
	}
	return todo
}

// AbandonStarts gives up the starts and pulls without an outcome that are not needed any more, so that they are not repeated after a
// restart of the supervisor: all of a pod that is terminating or restarting, and those of runs that are replaced. A container with a
// process was created by its start and is stopped. A sandbox may exist partly, and is removed.
func (f Facts) AbandonStarts(pod *spec.Pod, found Found, now Instant) Facts {
	message := "not started again after a restart of the daemon: the container is being replaced"
	stopping := Terminating(pod, f) || f.Restart.pending()
	if stopping {
		message = "not started again after a restart of the daemon: the pod is being stopped"
	}
	if stopping && f.Sandbox.inFlight() {
		f = f.Apply(SandboxLost{Sandbox: f.Sandbox.N, Message: message, At: now})
	}
	for _, name := range f.names() {
		c := f.Container(name)
		if c.Pull.inFlight() && (stopping || f.removed(name)) {
			f = f.Apply(Issued{Action: CancelPull{Container: name, For: c.Pull.For}, At: now})
			f = f.Apply(ActionFailed{Action: PullImage{Container: name, For: c.Pull.For}, At: now})
		}
		replaced := stopping || f.removed(name) || f.superseded(&c.Newest)
		if a := &c.Newest; replaced && a.live() && a.Started.IsZero() {
			f = f.abandonStart(a.Ref, message, found, now)
		}
	}
	return f
}

// abandonStart gives up the start of a run, unless it has created a process.
func (f Facts) abandonStart(ref Ref, message string, found Found, now Instant) Facts {
	if i := slices.IndexFunc(found.Runs, func(r Run) bool { return r.Ref == ref && !r.NoProcess }); i >= 0 {
		r := found.Runs[i]
		return f.Apply(ContainerStarted{Ref: r.Ref, ID: r.ID, Image: r.Image, ImageID: r.ImageID, At: now})
	}
	return f.Apply(ActionFailed{
		Action: StartContainer{Ref: ref}, Failure: Failure{Kind: FailureNotCreated, Message: message}, At: now,
	})
}

// RetireUnknown removes the containers that the engine has and the pod does not, because the change of the definition that added
// them was not saved.
func (f Facts) RetireUnknown(pod *spec.Pod, found Found) Facts {
	if found.Pod == nil {
		return f
	}
	f.Outgoing = slices.Clone(f.Outgoing)
	for _, name := range f.names() {
		c := found.Pod.Container(name)
		if c != nil && pod.Container(name) == nil && !f.ephemeral(name) && f.outgoing(name) == nil && len(f.Outgoing) < 2*maxOutgoing {
			f.goes(found.Pod, c, true)
		}
	}
	return f
}

// Starts returns the starts of the running containers, sorted by container, as events. The supervisor keeps them until the next boot, so
// that their times are known after a restart, also if the state was not saved since.
func (f Facts) Starts() []ContainerStarted {
	var list []ContainerStarted
	for _, name := range f.names() {
		if a := &f.Container(name).Newest; a.running() {
			list = append(list, ContainerStarted{
				Ref: a.Ref, ID: a.ID, Image: a.Image, ImageID: a.ImageID, Architecture: a.Architecture, At: a.Started,
			})
		}
	}
	return list
}

// StopSignals returns the stop signals that were sent to running containers, sorted by container, as events. The supervisor
// keeps them until the next boot, so that it sends none of them again after a restart.
func (f Facts) StopSignals() []SignalSent {
	var list []SignalSent
	for _, name := range f.names() {
		if a := &f.Container(name).Newest; a.running() && !a.StopSent.IsZero() {
			list = append(list, SignalSent{Ref: a.Ref, At: a.StopSent})
		}
	}
	return list
}

// SandboxReady returns the number of the sandbox that containers run in, or 0 if there is none.
func (f Facts) SandboxReady() int {
	if f.Sandbox.ready() {
		return f.Sandbox.N
	}
	return 0
}

// Found is what the engine has of a pod, according to the labels of its sandboxes and containers.
type Found struct {
	UID     string
	Pod     *spec.Pod // the definition that the newest container was created from; nil if there is none
	Sandbox int       // number of the newest sandbox; 0: none is known
	Ready   bool      // the sandbox exists
	IPs     []string
	Runs    []Run // in any order
}

// Damage is a file of the engine that was damaged and that running containers depended on, so that they were killed.
type Damage struct {
	UID   string // the pod whose containers were killed; empty: all pods
	File  string
	Error string
	Aside string // where the file is now; empty: it was missing
}

// rounds returns the first and the newest round of the runs in a sandbox; 0 if it has none.
func (f Found) rounds(sandbox int) (first, newest int) {
	for _, r := range f.Runs {
		if r.Sandbox == sandbox {
			first, newest = min(cmp.Or(first, r.Round), r.Round), max(newest, r.Round)
		}
	}
	return first, newest
}

// Run is a container of the engine.
type Run struct {
	StartContainer
	ID    string
	Image string
	// Architecture is that of the image; empty: not known.
	Architecture string
	// NoProcess: the container has neither a process nor an exit. Its start was interrupted before it was created, or it was lost.
	NoProcess bool
}

// CatchUp folds in what the engine has and the facts do not: ephemeral containers, and newer sandboxes and runs. If the state
// file of the pod is lost, this recovers the whole pod from facts that contain only a UID and an instant. The times of the past
// are not known, so all of it happens now. Exits are found by waiting for the runs, as after every restart.
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
		wait := f.Wait
		f = f.Apply(Issued{Action: StartSandbox{Sandbox: sandbox, Round: max(f.Round+1, first)}, At: now})
		if found.Ready && found.Sandbox == sandbox {
			f = f.Apply(SandboxStarted{Sandbox: found.Sandbox, IPs: found.IPs, At: now})
		} else {
			f = f.Apply(SandboxLost{Sandbox: sandbox, Message: "sandbox not found", At: now})
			f.Wait = wait // it may be of an earlier boot
		}
	}
	if newest > f.Round { // all containers were restarted in this sandbox
		f = f.Apply(Issued{Action: StartRound{Round: newest}, At: now})
	}
	runs := slices.SortedFunc(slices.Values(found.Runs), func(a, b Run) int { return cmp.Compare(a.Attempt, b.Attempt) })
	for _, r := range runs {
		newest := &f.Container(r.Container).Newest
		if r.Attempt <= newest.N() {
			continue
		}
		if newest.live() { // a newer run exists, so this one has exited
			f = f.Apply(ContainerExited{Ref: newest.Ref, Exit: Exit{Code: 137, Reason: ReasonStatusUnknown}, At: now})
		}
		f = f.Apply(Issued{Action: r.StartContainer, At: now})
		f = f.Apply(ContainerStarted{Ref: r.Ref, ID: r.ID, Image: r.Image, ImageID: r.ImageID, Architecture: r.Architecture, At: now})
	}
	return f
}

// EngineUnavailable reports that the engine cannot be reached, so the facts may be outdated.
type EngineUnavailable struct{ At Instant }

func (e EngineUnavailable) apply(f *Facts) { set(&f.EngineUnavailable, e.At) }

// EngineAvailable reports that the engine can be reached again.
type EngineAvailable struct{ At Instant }

func (e EngineAvailable) apply(f *Facts) {
	if since := f.EngineUnavailable; !since.IsZero() {
		f.Trial.prolong(e.At.Sub(since))
	}
	f.EngineUnavailable = Instant{}
}
