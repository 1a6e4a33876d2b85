package lifecycle

import (
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
)

// Facts is what is known about one pod. The zero value with a UID and the instant of acceptance is a pod for which nothing has
// been done yet. A Facts value is immutable, and so is what it refers to: [Facts.Apply] returns a new one, so a snapshot is safe for
// concurrent use. Its size is bounded by the number of containers, not by the number of their restarts.
type Facts struct {
	UID               string                `json:"uid"`
	Accepted          Instant               `json:"accepted,omitzero"` // status.startTime
	Round             int                   `json:"round"`
	Sandbox           Sandbox               `json:"sandbox,omitzero"`
	Stop              Stop                  `json:"stop,omitzero"`
	Containers        map[string]*Container `json:"containers,omitempty"`       // by name, not nil; see [Facts.Container]
	Removal           Removal               `json:"removal,omitzero"`           // of the whole pod, after it was deleted
	Restarted         int                   `json:"restarted,omitempty"`        // the newest round that restarted all containers; 0: none
	RestartedAt       Instant               `json:"restartedAt,omitzero"`       // when that round was opened
	Ephemeral         []spec.Container      `json:"ephemeral,omitempty"`        // in the order in which they were added
	EngineUnavailable Instant               `json:"engineUnavailable,omitzero"` // since when the engine is unavailable
	Restart           Restart               `json:"restart,omitzero"`           // of the pod, while everything is being stopped for it
	Again             int                   `json:"again,omitempty"`            // the newest round that a [Restart] opened; 0: none
	AgainAt           Instant               `json:"againAt,omitzero"`           // when that round was opened
	Outgoing          []Outgoing            `json:"outgoing,omitempty"`         // containers with a run of an earlier definition
	Forgotten         int                   `json:"forgotten,omitempty"`        // the highest attempt number of a container that was removed
	Wait              Wait                  `json:"wait,omitzero"`              // for the conditions that must be met before the pod starts
	Collection        Collection            `json:"collection,omitzero"`        // of what is left, after the pod has finished
	Escalation        Escalation            `json:"escalation,omitzero"`        // while the pod stays unready
	Trial             Trial                 `json:"trial,omitzero"`             // of the newest request
	Resize            Resize                `json:"resize,omitzero"`            // of the pod in place
	Job               JobPart               `json:"job,omitzero"`               // the part of the pod in its Job

	Conditions map[ConditionType]SetCondition `json:"conditions,omitempty"` // set by clients
	Changes    int                            `json:"changes,omitempty"`    // of the definition, apart from labels and annotations
}

// Generation returns metadata.generation: 1 for a pod whose definition has not changed since it was created. As in Kubernetes, labels and
// annotations do not count, and ephemeral containers do.
func (f *Facts) Generation() int64 { return 1 + int64(f.Changes) }

// Container returns what is known about a container; not nil, but zero for an unknown one. It must not be changed.
func (f *Facts) Container(name string) *Container {
	if c := f.Containers[name]; c != nil {
		return c
	}
	return &Container{}
}

// own returns what is known about a container, to change it in facts that the caller owns.
func (f *Facts) own(name string) *Container {
	c := f.Container(name)
	f.Containers[name] = c
	return c
}

// ownAll replaces what is known about containers by copies, which may be changed.
func (f *Facts) ownAll() {
	containers := make(map[string]*Container, len(f.Containers))
	copies := make([]Container, 0, len(f.Containers))
	for name := range f.Containers {
		copies = append(copies, *f.Container(name))
		containers[name] = &copies[len(copies)-1]
	}
	f.Containers = containers
}

// update changes the attempt identified by ref, if it is one of the two that are kept.
func (f *Facts) update(ref Ref, change func(*Attempt)) {
	c := f.Containers[ref.Container]
	if c == nil {
		return
	}
	run := &c.Newest
	if ref != run.Ref {
		run = &c.Previous
	}
	if ref == run.Ref {
		before := run.terminated()
		change(run)
		if !before && run.terminated() {
			c.count(run)
		}
	}
}

// updatePull changes the pull for the given attempt of a container, if it is the newest and in progress.
func (f *Facts) updatePull(container string, attempt int, change func(*Pull)) {
	if c := f.Containers[container]; c != nil && c.Pull.For == attempt && c.Pull.inFlight() {
		change(&c.Pull)
	}
}

// set stores the instant if none is stored.
func set(field *Instant, at Instant) {
	if field.IsZero() {
		*field = at
	}
}

// Live returns the runs that were started and may still have a process, sorted by name. After a restart of the supervisor it
// must wait for each of them again.
func (f Facts) Live() []Ref {
	var refs []Ref
	for _, name := range f.names() {
		if ref, live := f.LiveRun(name); live {
			refs = append(refs, ref)
		}
	}
	return refs
}

// LiveRun returns the run of a container that is in [Facts.Live], if there is one.
func (f *Facts) LiveRun(container string) (Ref, bool) {
	a := &f.Container(container).Newest
	return a.Ref, a.running()
}

// anyLive reports whether a process of any container may exist.
func (f *Facts) anyLive() bool {
	for _, c := range f.Containers {
		if c.Newest.live() {
			return true
		}
	}
	return false
}

// Idle reports whether the pod has no process, no pull and no sandbox.
func (f Facts) Idle() bool {
	for _, c := range f.Containers {
		if c.Newest.live() || c.Pull.inFlight() {
			return false
		}
	}
	return !f.Sandbox.mayExist()
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

// imported reports whether the pod's image archives were imported: a container has got its image.
func (f *Facts) imported() bool {
	for _, c := range f.Containers {
		if c.Image.ID != "" {
			return true
		}
	}
	return false
}

// unavailableLimit is how long the engine may be unavailable before the phase becomes Unknown (deviation 20).
const unavailableLimit = 10 * time.Second

// phaseUnknown reports whether the engine has been unavailable for so long that the phase is Unknown.
func (f *Facts) phaseUnknown(now Instant) bool {
	return !f.EngineUnavailable.IsZero() && now.Sub(f.EngineUnavailable) > unavailableLimit
}

// Stop is a request to stop the pod, from a user, a client or the supervisor.
type Stop struct {
	Requested Instant `json:"requested,omitzero"`
	Deadline  Instant `json:"deadline,omitzero"` // end of the grace period; later requests can only shorten it

	Grace   time.Duration `json:"grace,omitempty"`  // the requested period that ends at the deadline
	Force   bool          `json:"force,omitempty"`  // no grace period, not even [minimumGrace]
	Delete  bool          `json:"delete,omitempty"` // remove everything of the pod
	By      string        `json:"by,omitempty"`     // who requested it, as shown in the event
	ByUser  bool          `json:"byUser,omitempty"` // requested by a user or a client, not only by a limit of the pod
	Reason  Reason        `json:"reason,omitempty"` // why the pod failed; empty: the exit codes of its containers decide
	Message string        `json:"message,omitempty"`
}

// Sandbox is the newest attempt to run the pod's sandbox.
type Sandbox struct {
	N           int      `json:"n" format:"key"`
	Requested   Instant  `json:"requested,omitzero"`
	Ready       Instant  `json:"ready,omitzero"`
	Lost        Instant  `json:"lost,omitzero"`
	Failed      Instant  `json:"failed,omitzero"`
	Unavailable bool     `json:"unavailable,omitempty"` // it failed because the engine was unavailable; the sandbox may exist
	Failures    int      `json:"failures,omitempty"`    // consecutive, with the same reason, up to the back-off limit; 0 once ready
	Reason      Reason   `json:"reason,omitempty"`      // of these failures
	Message     string   `json:"message,omitempty"`     // why it failed or was lost
	IPs         []string `json:"ips,omitempty"`
	Removal     Removal  `json:"removal,omitzero"`
}

// inFlight reports whether the start of the sandbox has no outcome yet.
func (s *Sandbox) inFlight() bool {
	return s.N > 0 && s.Ready.IsZero() && s.Failed.IsZero() && s.Lost.IsZero() && s.Removal.Done.IsZero()
}

// ready reports whether containers can be started in the sandbox.
func (s *Sandbox) ready() bool {
	return !s.Ready.IsZero() && s.Lost.IsZero() && s.Removal.Requested.IsZero()
}

// mayExist reports whether there may be something to remove. A failed start has cleaned up after itself, unless the engine was
// unavailable.
func (s *Sandbox) mayExist() bool {
	return s.N > 0 && (s.Failed.IsZero() || s.Unavailable) && s.Removal.Done.IsZero()
}

// Restart is a request of a person to stop all containers and start the pod again. It is pending until everything has stopped.
type Restart struct {
	Requested Instant `json:"requested,omitzero"`
	By        string  `json:"by,omitempty"` // who requested it, as shown in the event
	// Redefined is set if the definition of the pod changed in a way that only a new sandbox can carry out.
	Redefined bool `json:"redefined,omitempty"`
}

// pending reports whether a restart was requested and the containers are still being stopped.
func (r *Restart) pending() bool { return !r.Requested.IsZero() }

// afterShutdown reports whether the pod starts again because the host, or the daemon that was shut down, has started. What has failed
// before the shutdown still counts.
func (r *Restart) afterShutdown() bool { return r.By == ByStart || r.By == ByDaemonStart }

// activeSince returns the instant from which activeDeadlineSeconds counts.
func (f *Facts) activeSince() Instant {
	if f.AgainAt.IsZero() {
		return f.Accepted
	}
	return f.AgainAt
}

// wasReset reports whether a run belongs to a round before the newest restart of all containers.
func (f *Facts) wasReset(a *Attempt) bool {
	return a.N() > 0 && a.Round < f.Restarted && !f.ephemeral(a.Container)
}

// superseded reports whether another run follows a run whatever its exit and its restart policy: all containers, the pod or the
// container are restarted.
func (f *Facts) superseded(a *Attempt) bool {
	if a.N() == 0 || f.ephemeral(a.Container) {
		return false
	}
	return f.wasReset(a) || a.Round < f.Again || f.Restart.pending() || f.Container(a.Container).Replaced.includes(a)
}

// Collection is the removal of what a pod that has finished has left. Its facts, and so its status, are kept.
type Collection struct {
	Requested Instant `json:"requested,omitzero"`
	Removal   Removal `json:"removal,omitzero"`
}

// DefinitionOf returns the container that a run was started from, or will be: that of an earlier definition if the run has not
// stopped since the definition changed. It returns nil if the pod has no such container.
func DefinitionOf(pod *spec.Pod, f Facts, container string, attempt int) *spec.Container {
	if o := f.earlier(container, attempt); o != nil {
		return &o.Container
	}
	return pod.Container(container)
}

// definition is DefinitionOf for a run of a container that the pod has.
func (f *Facts) definition(c *spec.Container, a *Attempt) *spec.Container {
	if o := f.earlier(c.Name, a.N()); o != nil {
		return &o.Container
	}
	return c
}

// earlier returns the earlier definition that a run was started from; nil if it was not.
func (f *Facts) earlier(container string, attempt int) *Outgoing {
	if o := f.outgoing(container); o != nil && attempt <= o.Attempt {
		return o
	}
	return nil
}

// nextAttempt returns the number of the next run of a container. A container that is added again does not reuse the numbers of the
// one that was removed.
func (f *Facts) nextAttempt(h *Container) int {
	if h.Newest.N() == 0 {
		return f.Forgotten + 1
	}
	return h.Newest.N() + 1
}

// containersOf iterates over the init containers and the app containers of a pod.
func containersOf(pod *spec.Pod) func(yield func(*spec.Container) bool) {
	return func(yield func(*spec.Container) bool) {
		for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// Outgoing is a container as a run of it was started, before a change of its definition. The run is stopped as it says.
type Outgoing struct {
	Container spec.Container `json:"container"`
	Attempt   int            `json:"attempt"` // the newest run of this definition
	Grace     time.Duration  `json:"grace"`
	Removed   bool           `json:"removed,omitempty"` // the pod does not have the container any more
}

// outgoing returns the earlier definition of a container; nil if there is none.
func (f *Facts) outgoing(name string) *Outgoing {
	for i := range f.Outgoing {
		if f.Outgoing[i].Container.Name == name {
			return &f.Outgoing[i]
		}
	}
	return nil
}

func (f *Facts) dropOutgoing(name string) {
	f.Outgoing = slices.DeleteFunc(slices.Clone(f.Outgoing), func(o Outgoing) bool { return o.Container.Name == name })
	if len(f.Outgoing) == 0 {
		f.Outgoing = nil
	}
}

// removed reports whether a change of the definition removed a container that is not forgotten yet.
func (f *Facts) removed(name string) bool {
	o := f.outgoing(name)
	return o != nil && o.Removed
}

// maxEphemeral is the maximum number of ephemeral containers over the life of a pod. Their records are kept.
const maxEphemeral = 64

// maxEphemeralPulls is how many pulls of the image of an ephemeral container may fail. Then the container is removed from the pod: a person
// waits for it, and nothing else can remove it.
const maxEphemeralPulls = 3

// ephemeral reports whether an ephemeral container has the given name.
func (f *Facts) ephemeral(name string) bool {
	return slices.ContainsFunc(f.Ephemeral, func(c spec.Container) bool { return c.Name == name })
}

// removeEphemeral removes an ephemeral container. Its name can be used again. Other containers stay.
func (f *Facts) removeEphemeral(name string) {
	if f.ephemeral(name) {
		f.Ephemeral = slices.DeleteFunc(slices.Clone(f.Ephemeral), func(c spec.Container) bool { return c.Name == name })
		delete(f.Containers, name)
		f.Changes++
	}
}

// Trial is the newest request that has started the pod, restarted it or changed its definition, and what became of it. It is passed when
// the pod was ready for the minimum ready time, and has failed when a run since the request fails before.
type Trial struct {
	N        int           `json:"n,omitempty"`        // of the requests for the pod, from 0
	Since    Instant       `json:"since,omitzero"`     // the request; zero: it is not known, as of pods of an earlier version
	Within   time.Duration `json:"within,omitempty"`   // how long the pod may take to become ready; 0: there is no limit
	Due      Instant       `json:"due,omitzero"`       // when it has failed if the pod is not ready; zero: the time does not count yet
	MinReady time.Duration `json:"minReady,omitempty"` // for how long the pod must be ready
	// RollsBack reports that an earlier definition replaces this one if it fails. What failed is not started again before.
	RollsBack bool    `json:"rollsBack,omitempty"`
	Passed    Instant `json:"passed,omitzero"`
	Failed    Instant `json:"failed,omitzero"`   // the first failure; a pod that is kept can pass later
	Message   string  `json:"message,omitempty"` // why it failed
}

// NewTrial returns a trial that begins now. Within is how long the pod may take to become ready; 0: there is no limit.
func NewTrial(within, minReady time.Duration, rollsBack bool, now Instant) Trial {
	return Trial{Since: now, Within: within, MinReady: minReady, RollsBack: rollsBack}
}

// Pending reports whether the trial has neither passed nor failed.
func (t *Trial) Pending() bool { return !t.Since.IsZero() && t.Passed.IsZero() && t.Failed.IsZero() }

// Holds reports whether the trial has failed and no container is started until an earlier definition replaces this one.
func (t *Trial) Holds() bool { return t.RollsBack && !t.Failed.IsZero() && t.Passed.IsZero() }

// rebase moves all instants.
func (t *Trial) rebase(move func(*Instant)) {
	for _, at := range []*Instant{&t.Since, &t.Due, &t.Passed, &t.Failed} {
		move(at)
	}
}

// booted begins a pending trial again: the pod starts with the host.
func (t *Trial) booted(at Instant) {
	if t.Pending() {
		t.Since, t.Due = at, Instant{}
	}
}

// startAgain lets the time of a pending trial count from the next start: everything of the pod had to stop first.
func (t *Trial) startAgain() {
	if t.Pending() {
		t.Due = Instant{}
	}
}

// prolong adds a time to that of a pending trial in which nothing could be started.
func (t *Trial) prolong(d time.Duration) {
	if t.Pending() && !t.Due.IsZero() {
		t.Due = t.Due.Add(d)
	}
}

// resume gives the pod time to become ready after a time in which it was not supervised.
func (t *Trial) resume(at Instant) {
	if t.Pending() && !t.Due.IsZero() {
		t.Due = later(t.Due, at.Add(min(t.Within, settleTime)))
	}
}

const (
	// maxRecovery is for how long a pod must be ready until its escalation starts again at the first step. A shorter
	// spec.Pod.UnhealthyAfterSeconds replaces it. Without it a container that crashes after each start would never lead to a reboot.
	maxRecovery = time.Minute
	// settleTime is the minimum time from a gap, in which nothing was supervised, to a step, or to the failure of a trial that has more
	// time: probes must run first.
	settleTime = time.Minute
)

// Step is a step of the escalation for a pod that stays unready.
type Step int

// The steps, in their order.
const (
	StepNone    Step = iota
	StepRestart      // all containers are restarted in their sandbox
	StepReplace      // the sandbox is replaced, and init containers run again
	StepReboot       // the host is rebooted
)

// words of the steps, for people.
var stepWords = [...]string{"", "restart all containers", "replace the pod sandbox", "reboot the host"}

// String returns what the step does, in the imperative.
func (s Step) String() string { return stepWords[s] }

// LastStep returns the step that the escalation of a pod may go up to.
func LastStep(pod *spec.Pod) Step {
	switch pod.OnUnhealthy {
	case spec.UnhealthyRestart:
		return StepRestart
	case spec.UnhealthyReplace:
		return StepReplace
	case spec.UnhealthyReboot:
		return StepReboot
	}
	return StepNone
}

// Escalation is what was done because the pod stayed unready, see [spec.Pod.OnUnhealthy]. A reboot, a stop and a start of the pod, and
// a change of its definition start it again.
type Escalation struct {
	Since   Instant       `json:"since,omitzero"`    // from when on unready time counts; zero: it does not count now
	Counted time.Duration `json:"counted,omitempty"` // unready time before Since, after the last step
	Ready   Instant       `json:"ready,omitzero"`    // since when the pod is ready again
	Gap     Instant       `json:"gap,omitzero"`      // end of the newest time in which nothing was supervised
	Step    Step          `json:"step,omitempty"`    // the last step
	At      Instant       `json:"at,omitzero"`       // when it was taken
	Reboot  HostReboot    `json:"reboot,omitzero"`
}

// due returns when the next step is due while unready time counts.
func (e *Escalation) due(after time.Duration) Instant {
	at := e.Since.Add(after - e.Counted)
	if !e.Gap.IsZero() {
		at = later(at, e.Gap.Add(min(settleTime, after)))
	}
	return at
}

// rebase moves all instants.
func (e *Escalation) rebase(move func(*Instant)) {
	for _, t := range []*Instant{&e.Since, &e.Ready, &e.Gap, &e.At, &e.Reboot.Requested, &e.Reboot.Accepted, &e.Reboot.Failed} {
		move(t)
	}
}

// SetBack moves the escalation as [Facts.SetBack] does.
func (e Escalation) SetBack(saved, now Instant) Escalation {
	e.rebase(func(t *Instant) { *t = t.SetBack(saved, now) })
	return e
}

// count ends the current period of unready time and adds it.
func (e *Escalation) count(at Instant) {
	if !e.Since.IsZero() {
		e.Counted, e.Since = e.Counted+max(at.Sub(e.Since), 0), Instant{}
	}
}

// Escalated folds in the escalation of a checkpoint, unless the facts have a later step.
func (f Facts) Escalated(e Escalation) Facts {
	if own := &f.Escalation; e.Step == own.Step && e.At.Boot == own.At.Boot && e.At.Mono == own.At.Mono {
		f.Escalation = e
	}
	return f
}

// EscalationBy is who requests restarts of an escalation.
const EscalationBy = "onUnhealthy of the pod file"

// HostReboot is the newest request to reboot the host.
type HostReboot struct {
	Requested Instant `json:"requested,omitzero"`
	Accepted  Instant `json:"accepted,omitzero"` // the host was asked to reboot
	Failed    Instant `json:"failed,omitzero"`   // the request was held back, or it failed
	Reason    Reason  `json:"reason,omitempty"`  // of the failure
	Message   string  `json:"message,omitempty"`
}

// pending reports whether the request has no outcome yet.
func (r *HostReboot) pending() bool {
	return !r.Requested.IsZero() && r.Accepted.IsZero() && r.Failed.IsZero()
}

// Wait is the newest wait of a pod for the conditions in [spec.Pod.Conditions]. A pod waits before its first sandbox and, after a
// reboot, before the next one. The loss of the sandbox within one boot is not a start of the pod.
type Wait struct {
	N     int     `json:"n"` // number of the wait, from 1
	Since Instant `json:"since,omitzero"`
	Ended Instant `json:"ended,omitzero"` // when the sandbox was requested, also if there was nothing to wait for
	// Conditions has what is known about each condition, by its entry in the pod file. A condition that was met in this wait stays met.
	Conditions map[string]WaitedFor `json:"conditions,omitempty"`
}

// end records that the pod starts, so that it no longer waits, not even for conditions that are added to its definition later.
func (w *Wait) end(at Instant) { set(&w.Ended, at) }

// WaitedFor is what is known about one condition of a wait.
type WaitedFor struct {
	Met     Instant `json:"met,omitzero"`
	Message string  `json:"message,omitempty"` // why it is not met; empty if it is, or was not checked yet
}

// WaitRef identifies one condition of one wait.
type WaitRef struct {
	Wait      int
	Condition string // entry of [spec.Pod.Conditions]
}
