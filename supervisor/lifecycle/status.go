package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
)

// Phase is v1.PodPhase.
type Phase string

// The phases.
const (
	PhasePending   Phase = "Pending"
	PhaseRunning   Phase = "Running"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
	// PhaseUnknown means that the container engine is unavailable (deviation 20).
	PhaseUnknown Phase = "Unknown"
)

// Terminal reports whether the phase is final.
func (p Phase) Terminal() bool { return p == PhaseSucceeded || p == PhaseFailed }

// Status is the status of a pod. Its JSON is v1.PodStatus.
type Status struct {
	ObservedGeneration    int64             `json:"observedGeneration,omitempty"` // [Facts.Generation] of the facts that it was computed from
	Phase                 Phase             `json:"phase"`
	Reason                Reason            `json:"reason,omitempty"`
	Message               string            `json:"message,omitempty"`
	Conditions            []Condition       `json:"conditions"`
	PodIP                 string            `json:"podIP,omitempty"`
	PodIPs                []PodIP           `json:"podIPs,omitempty"`
	StartTime             time.Time         `json:"startTime,omitzero"`
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses,omitempty"`
	ContainerStatuses     []ContainerStatus `json:"containerStatuses,omitempty"`
	// EphemeralContainerStatuses have neither Started nor Ready.
	EphemeralContainerStatuses []ContainerStatus `json:"ephemeralContainerStatuses,omitempty"`
	QOSClass                   spec.QOSClass     `json:"qosClass"`
	// AllocatedResources are the requests of the pod, and Resources its pod-level requests and limits.
	AllocatedResources spec.ResourceList `json:"allocatedResources,omitempty"`
	Resources          *spec.Resources   `json:"resources,omitempty"`
}

// PodIP is one address of the pod.
type PodIP struct {
	IP string `json:"ip"`
}

// ContainerStatus is v1.ContainerStatus.
type ContainerStatus struct {
	Name         string `json:"name"`
	State        State  `json:"state"`
	LastState    State  `json:"lastState"`
	Ready        bool   `json:"ready"`
	RestartCount int    `json:"restartCount"`
	Image        string `json:"image"`
	ImageID      string `json:"imageID"`
	ContainerID  string `json:"containerID,omitempty"`
	Started      *bool  `json:"started,omitempty"`
	// AllocatedResources are the requests, and Resources the requests and limits, of the definition that runs, or ran last.
	AllocatedResources spec.ResourceList `json:"allocatedResources,omitempty"`
	Resources          *spec.Resources   `json:"resources,omitempty"`
}

// State is v1.ContainerState: at most one field is set.
type State struct {
	Waiting    *Waiting    `json:"waiting,omitempty"`
	Running    *Running    `json:"running,omitempty"`
	Terminated *Terminated `json:"terminated,omitempty"`
}

// Waiting is v1.ContainerStateWaiting.
type Waiting struct {
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Running is v1.ContainerStateRunning.
type Running struct {
	StartedAt time.Time `json:"startedAt"`
}

// Terminated is v1.ContainerStateTerminated.
type Terminated struct {
	ExitCode    int       `json:"exitCode"`
	Reason      Reason    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"`
	StartedAt   time.Time `json:"startedAt,omitzero"` // zero: it never ran
	FinishedAt  time.Time `json:"finishedAt,omitzero"`
	ContainerID string    `json:"containerID,omitempty"`
}

// StatusOf computes the status of a pod. Times are wall clock times in whole seconds, as in Kubernetes. The conditions have no
// transition times yet: see [Status.Since].
func StatusOf(pod *spec.Pod, f Facts, now Instant) Status {
	v := view{pod: pod, facts: &f, now: now, ended: Terminating(pod, f)}
	s := Status{
		ObservedGeneration: f.Generation(), StartTime: stamp(f.Accepted), QOSClass: pod.QOS(), AllocatedResources: pod.EffectiveRequests(),
		Resources: pod.OwnResources(),
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		s.InitContainerStatuses = append(s.InitContainerStatuses, v.container(c, roleOf(c)))
	}
	for i := range pod.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, v.container(&pod.Containers[i], roleApp))
	}
	for i := range f.Ephemeral {
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, v.container(&f.Ephemeral[i], roleEphemeral))
	}
	byName := func(a, b ContainerStatus) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(s.ContainerStatuses, byName)
	slices.SortFunc(s.EphemeralContainerStatuses, byName)
	s.Phase = v.phase(&s)
	s.Conditions = v.conditions(&s)
	switch {
	case s.Phase == PhaseFailed:
		s.Reason, s.Message = f.Stop.Reason, f.Stop.Message
	case s.Phase != PhaseSucceeded && f.phaseUnknown(now):
		s.Phase, s.Reason, s.Message = PhaseUnknown, ReasonEngineUnavailable, "Container engine unavailable"
	case len(Unmet(pod, f)) > 0:
		s.Reason, s.Message = ReasonWaitingFor, waitMessage(pod, &f)
	}
	for _, ip := range f.Sandbox.IPs {
		s.PodIPs = append(s.PodIPs, PodIP{IP: ip})
		s.PodIP = s.PodIPs[0].IP
	}
	return s
}

// stamp returns the time of an instant as it is shown in the status.
func stamp(t Instant) time.Time { return t.Wall.UTC().Truncate(time.Second) }

// role is the kind of a container in its pod.
type role int

const (
	roleApp role = iota
	roleInit
	roleSidecar
	roleEphemeral
)

// roleOf returns the role of an init container.
func roleOf(c *spec.Container) role {
	if c.IsSidecar() {
		return roleSidecar
	}
	return roleInit
}

// view is a status under construction.
type view struct {
	pod   *spec.Pod
	facts *Facts
	now   Instant
	ended bool // the pod is terminating: no container is started any more
}

// allStopped reports whether the pod is terminating and no container can run.
func (v *view) allStopped() bool {
	return v.ended && !v.facts.anyLive()
}

// records returns the newest run that has a record, and the run before it. In a new round, the only information left of the init
// containers of an earlier round is the number of their restarts.
func (v *view) records(h *Container, r role) (newest, before *Attempt) {
	newest, before = &h.Newest, &h.Previous
	if !newest.ran() {
		newest, before = before, &Attempt{}
	}
	if (r == roleInit || r == roleSidecar) && !v.ended && newest.Round != v.facts.Round && !v.facts.wasReset(newest) {
		newest, before = &Attempt{Restarts: newest.Restarts}, &Attempt{}
	}
	return newest, before
}

// initialized reports whether an app container has run, or all init containers have completed and all sidecars are started. A sidecar that
// terminates before the first app container has run makes it false, even if that container is about to start (contract 2.2).
func (v *view) initialized() bool {
	for i := range v.pod.Containers {
		if h := v.facts.Containers[v.pod.Containers[i].Name]; h.Newest.ran() || h.Previous.ran() {
			return true
		}
	}
	for i := range v.pod.InitContainers {
		c := &v.pod.InitContainers[i]
		if a := v.facts.Containers[c.Name].Newest; !initPassed(c, &a, v.facts.Round) {
			return false
		}
	}
	return true
}

func (v *view) container(c *spec.Container, r role) ContainerStatus {
	h := v.facts.Containers[c.Name]
	newest, before := v.records(&h, r)
	s := ContainerStatus{
		Name: c.Name, Image: c.Image, RestartCount: newest.Restarts, ImageID: newest.ImageID,
		ContainerID: containerID(newest.ID),
	}
	if newest.Image != "" {
		s.Image = newest.Image
	}
	if v.facts.wasReset(newest) { // the restart of all containers counts as soon as it is triggered
		s.RestartCount++
	}
	ran := v.facts.definition(c, newest)
	if r != roleEphemeral {
		s.AllocatedResources, s.Resources = ran.Resources.Requests, &ran.Resources
	}
	waiting := v.waiting(c, &h, newest, r)
	skipped := r == roleInit && v.skipped(c, newest)
	switch {
	case skipped:
		s.State = State{Terminated: &Terminated{Reason: ReasonCompleted, Message: skippedMessage}}
	case newest.running() && !newest.up(ran):
		s.State, s.LastState = State{Waiting: v.creating()}, v.terminated(before)
	case newest.running():
		s.State, s.LastState = State{Running: &Running{StartedAt: stamp(newest.Started)}}, v.terminated(before)
	case newest.terminated() && waiting == nil:
		s.State, s.LastState = v.terminated(newest), v.terminated(before)
	case waiting == nil:
		s.State = State{Terminated: &Terminated{
			ExitCode: 137, Reason: ReasonStatusUnknown,
			Message: "The container could not be located when the pod was terminated",
		}}
	default:
		s.State, s.LastState = State{Waiting: waiting}, v.terminated(newest)
	}
	if r == roleEphemeral {
		return s
	}
	started := newest.started(ran)
	s.Started, s.Ready = &started, newest.ready(ran)
	if r == roleInit {
		s.Ready = skipped || v.facts.countsAsTerminated(newest) && !initFailed(newest.Exit)
	}
	return s
}

// skippedMessage is the message of an init container that is not run before the next start of the pod.
const skippedMessage = "The container was added after the pod was initialized and runs at its next start"

// skipped reports whether an init container without a run was added after its turn. As in the kubelet, the status of such a container
// is that it has completed.
func (v *view) skipped(c *spec.Container, newest *Attempt) bool {
	if newest.ran() || v.facts.Containers[c.Name].Newest.Round == v.facts.Round {
		return false
	}
	for i := range reached(v.pod, v.facts) {
		if &v.pod.InitContainers[i] == c {
			return true
		}
	}
	return false
}

// missing reports whether a container without a run has status ContainerStatusUnknown in a terminated pod, as TerminatePod of
// the kubelet has it: the first init container, and app containers if the pod was initialized.
func (v *view) missing(c *spec.Container, r role) bool {
	inits := v.pod.InitContainers
	if r != roleApp {
		return r != roleEphemeral && c == &inits[0]
	}
	if len(inits) > 0 && !inits[len(inits)-1].IsSidecar() { // a sidecar at the end of the list may have terminated since
		last := v.facts.Containers[inits[len(inits)-1].Name].Newest
		return last.terminated() && !initFailed(last.Exit) || v.reachedApps()
	}
	return v.reachedApps()
}

// reachedApps reports whether all init containers have passed in this round, or an app container has been due in any round.
func (v *view) reachedApps() bool {
	for i := range v.pod.Containers {
		if pull := v.facts.Containers[v.pod.Containers[i].Name].Pull; pull.For > 0 && !pull.staged() || !pull.Cancelled.IsZero() {
			return true
		}
	}
	return v.initialized()
}

// waiting returns why a container that is not running waits. It returns nil if the container is not waiting, so that its last
// termination is shown, or if it is missing in a terminated pod.
func (v *view) waiting(c *spec.Container, h *Container, record *Attempt, r role) *Waiting {
	next, pull := &h.Newest, &h.Pull
	switch {
	case record.terminated() && !v.runsAgain(c, record, r):
		return nil
	case !record.terminated() && v.allStopped() && v.missing(c, r):
		return nil
	case pull.Reason != "" && pull.For > next.N():
		return pullWaiting(c, pull)
	case !next.ran() && next.Exit.Reason != "" && next.Round == v.facts.Round:
		return &Waiting{Reason: next.Exit.Reason, Message: next.Exit.Message}
	case v.facts.wasReset(record):
		return &Waiting{Reason: ReasonRestartingAllContainers, Message: restartingAllMessage}
	case next.terminated() && record == next:
		return v.backingOff(c, h)
	case record.terminated():
		return v.restartInProgress(c, h, record)
	}
	return v.creating()
}

// creating is the state of a container that is about to run, including its postStart hook.
func (v *view) creating() *Waiting {
	w := &Waiting{Reason: ReasonContainerCreating}
	if len(v.pod.InitContainers) > 0 {
		w.Reason = ReasonPodInitializing
	}
	if v.facts.Sandbox.Failures > 0 {
		w.Message = v.facts.Sandbox.Message
	}
	return w
}

// backingOff returns the back-off of a restart, until the restart is issued; nil if there is no delay.
func (v *view) backingOff(c *spec.Container, h *Container) *Waiting {
	due, _ := restartDue(v.pod, v.facts, c, h)
	delay := due.Sub(h.Newest.Exited)
	if delay <= 0 {
		return nil
	}
	if a := &h.Newest; v.waitedDelay(c, h, &h.Previous) == 0 {
		switch {
		case a.Exit.Reason == ReasonStartError:
			return &Waiting{Reason: ReasonRunContainerError, Message: a.Exit.Message}
		case a.StopReason == ReasonFailedPostStartHook:
			return &Waiting{Reason: ReasonPostStartHookError, Message: a.PostStart.Message}
		}
	}
	return v.crashLoop(c, delay)
}

// restartInProgress returns the back-off before a restart that has no outcome yet; nil if there was none, so that the last
// termination is shown. The kubelet shows the reason until the start has succeeded, too.
func (v *view) restartInProgress(c *spec.Container, h *Container, last *Attempt) *Waiting {
	if delay := v.waitedDelay(c, h, last); delay > 0 {
		return v.crashLoop(c, delay)
	}
	return nil
}

// waitedDelay returns the back-off between the previous run and the newest start; 0 if there was none.
func (v *view) waitedDelay(c *spec.Container, h *Container, before *Attempt) time.Duration {
	b, level := restartBackoff(v.pod, c), h.Backoff.Level
	if limit := b.delay(level); b.next(level) == level && h.Backoff.Granted.Sub(before.Exited) >= limit {
		return limit // at the limit, the level is the same for the first and for later delays
	}
	return b.delay(level - 1)
}

func (v *view) crashLoop(c *spec.Container, delay time.Duration) *Waiting {
	return &Waiting{Reason: ReasonCrashLoopBackOff, Message: fmt.Sprintf(
		"back-off %v restarting failed container=%s pod=%s_default(%s)", delay, c.Name, v.pod.Name, v.facts.UID)}
}

// pullWaiting returns the state of a failed pull: its error for the first failure, ImagePullBackOff afterwards.
func pullWaiting(c *spec.Container, pull *Pull) *Waiting {
	if pull.Level <= 1 || !pull.Reason.ofRegistry() {
		return &Waiting{Reason: pull.Reason, Message: pull.Message}
	}
	return &Waiting{
		Reason:  ReasonImagePullBackOff,
		Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", c.Image, pull.Reason, pull.Message),
	}
}

// terminated returns the state of a terminated run, and no state for any other. For a run that was reset by a restart of all
// containers it shows the reset, not the exit code (contract 4.2).
func (v *view) terminated(a *Attempt) State {
	if !a.terminated() {
		return State{}
	}
	t := Terminated{
		ExitCode: a.Exit.Code, Reason: a.Exit.Reason, Message: v.message(a.Exit.Message),
		StartedAt: stamp(a.Started), FinishedAt: stamp(a.Exited), ContainerID: containerID(a.ID),
	}
	if v.facts.wasReset(a) {
		t.ExitCode, t.Reason, t.Message = 137, ReasonRestartingAllContainers, restartingAllMessage
	}
	return State{Terminated: &t}
}

func containerID(id string) string {
	if id == "" {
		return ""
	}
	return "containerd://" + id
}
