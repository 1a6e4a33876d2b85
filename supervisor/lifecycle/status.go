package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
)

// Phase is where the pod stands in its life (v1.PodPhase).
type Phase string

// The phases.
const (
	PhasePending   Phase = "Pending"
	PhaseRunning   Phase = "Running"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
	// PhaseUnknown is that of a pod whose engine cannot be reached (DEVIATIONS 20).
	PhaseUnknown Phase = "Unknown"
)

// Terminal reports whether the phase is for good.
func (p Phase) Terminal() bool { return p == PhaseSucceeded || p == PhaseFailed }

// Status is what a person and a script are shown; its JSON is v1.PodStatus.
type Status struct {
	Phase                 Phase             `json:"phase"`
	Reason                Reason            `json:"reason,omitempty"`
	Message               string            `json:"message,omitempty"`
	Conditions            []Condition       `json:"conditions"`
	PodIP                 string            `json:"podIP,omitempty"`
	PodIPs                []PodIP           `json:"podIPs,omitempty"`
	StartTime             time.Time         `json:"startTime"`
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses,omitempty"`
	ContainerStatuses     []ContainerStatus `json:"containerStatuses,omitempty"`
	// EphemeralContainerStatuses have neither Started nor Ready.
	EphemeralContainerStatuses []ContainerStatus `json:"ephemeralContainerStatuses,omitempty"`
	QOSClass                   spec.QOSClass     `json:"qosClass"`
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

// StatusOf computes the status of a pod. The times in it are wall time in whole seconds, as in Kubernetes; the
// conditions carry no transition times yet: [Status.Since] fills them in.
func StatusOf(pod *spec.Pod, f Facts, now Instant) Status {
	v := view{pod: pod, facts: &f, now: now, ended: Terminating(pod, f)}
	s := Status{StartTime: stamp(f.Accepted), QOSClass: pod.QOS()}
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
	case s.Phase != PhaseSucceeded && f.unknown(now):
		s.Phase, s.Reason, s.Message = PhaseUnknown, ReasonEngineUnavailable, "The container engine cannot be reached"
	}
	for _, ip := range f.Sandbox.IPs {
		s.PodIPs = append(s.PodIPs, PodIP{IP: ip})
		s.PodIP = s.PodIPs[0].IP
	}
	return s
}

// stamp is an instant as the status shows it.
func stamp(t Instant) time.Time { return t.Wall.UTC().Truncate(time.Second) }

// role is what a container is to its pod.
type role int

const (
	roleApp role = iota
	roleInit
	roleSidecar
	roleEphemeral
)

// roleOf is the role of one of a pod's init containers.
func roleOf(c *spec.Container) role {
	if c.IsSidecar() {
		return roleSidecar
	}
	return roleInit
}

// view is one status in the making.
type view struct {
	pod   *spec.Pod
	facts *Facts
	now   Instant
	ended bool // nothing is started any more
}

// atRest reports whether the pod is to end and nothing of it can run.
func (v *view) atRest() bool {
	return v.ended && !v.facts.anyLive()
}

// records returns the newest run of a container that left a record, and the one before it. A new round knows nothing of
// the init containers of an earlier one but how often they ran.
func (v *view) records(h *Container, r role) (newest, before *Attempt) {
	newest, before = &h.Newest, &h.Previous
	if !newest.ran() {
		newest, before = before, &Attempt{}
	}
	if (r == roleInit || r == roleSidecar) && !v.ended && newest.Round != v.facts.Round && !v.facts.void(newest) {
		newest, before = &Attempt{Restarts: newest.Restarts}, &Attempt{}
	}
	return newest, before
}

// initialized reports whether the app containers' turn has come in this round or an earlier one.
func (v *view) initialized() bool {
	for i := range v.pod.Containers {
		h := v.facts.Containers[v.pod.Containers[i].Name]
		if h.Newest.ran() || h.Pull.For > 0 || !h.Pull.Cancelled.IsZero() { // once initialized, always
			return true
		}
	}
	for i := range v.pod.InitContainers {
		c := &v.pod.InitContainers[i]
		if a := v.facts.Containers[c.Name].Newest; !passed(c, &a, v.facts.Round) {
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
	if v.facts.void(newest) { // a restart of all containers counts from its beginning
		s.RestartCount++
	}
	waiting := v.waiting(c, &h, newest, r)
	switch {
	case newest.running() && !newest.up(c):
		s.State, s.LastState = State{Waiting: v.creating()}, v.terminated(before)
	case newest.running():
		s.State, s.LastState = State{Running: &Running{StartedAt: stamp(newest.Started)}}, v.terminated(before)
	case newest.over() && waiting == nil:
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
	started := newest.started(c)
	s.Started, s.Ready = &started, newest.ready(c)
	if r == roleInit {
		s.Ready = v.facts.counts(newest) && !initFailed(newest.Exit)
	}
	return s
}

// missing reports whether a container without a run counts as lost in a pod that came to rest, as TerminatePod of the kubelet has
// it: the first init container, for it was its turn, and an app container whose turn had come.
func (v *view) missing(c *spec.Container, r role) bool {
	inits := v.pod.InitContainers
	if r != roleApp {
		return r != roleEphemeral && c == &inits[0]
	}
	if len(inits) > 0 && !inits[len(inits)-1].IsSidecar() { // before which a sidecar may have ended since
		last := v.facts.Containers[inits[len(inits)-1].Name].Newest
		return last.over() && !initFailed(last.Exit) || v.initialized()
	}
	return v.initialized()
}

// waiting says what a container that does not run waits for; nil if it waits for nothing, so that its last end is what
// there is to see, or, of a pod that came to rest when it was the container's turn to run, that it is missing.
func (v *view) waiting(c *spec.Container, h *Container, record *Attempt, r role) *Waiting {
	next, pull := &h.Newest, &h.Pull
	switch {
	case record.over() && !v.again(c, record, r):
		return nil
	case !record.over() && v.atRest() && v.missing(c, r):
		return nil
	case pull.Reason != "" && pull.For > next.N():
		return pullWaiting(c, pull)
	case !next.ran() && next.Exit.Reason != "" && next.Round == v.facts.Round:
		return &Waiting{Reason: next.Exit.Reason, Message: next.Exit.Message}
	case v.facts.void(record):
		return &Waiting{Reason: ReasonRestartingAllContainers, Message: restartingAllMessage}
	case next.over() && record == next:
		return v.backingOff(c, h)
	case record.over():
		return v.underWay(c, h, record)
	}
	return v.creating()
}

// creating is what a container waits for that is about to run, its postStart hook included.
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

// backingOff shows the delay of a restart, until that run is asked for, and nothing where there is none.
func (v *view) backingOff(c *spec.Container, h *Container) *Waiting {
	due, _ := restartDue(v.pod, v.facts, c, h)
	delay := due.Sub(h.Newest.Exited)
	if delay <= 0 {
		return nil
	}
	if a := &h.Newest; v.waited(c, h, &h.Previous) == 0 {
		switch {
		case a.Exit.Reason == ReasonStartError:
			return &Waiting{Reason: ReasonRunContainerError, Message: a.Exit.Message}
		case a.StopReason == ReasonFailedPostStartHook:
			return &Waiting{Reason: ReasonPostStartHookError, Message: a.PostStart.Message}
		}
	}
	return v.crashLoop(c, delay)
}

// underWay shows, while a restart has no outcome, what it has waited for: its delay, and nothing where there was none, so that
// the last end is what there is to see. The kubelet's reason stays until the start has gone well too.
func (v *view) underWay(c *spec.Container, h *Container, last *Attempt) *Waiting {
	if delay := v.waited(c, h, last); delay > 0 {
		return v.crashLoop(c, delay)
	}
	return nil
}

// waited is the delay that the newest start waited out after the run before it; 0: none.
func (v *view) waited(c *spec.Container, h *Container, before *Attempt) time.Duration {
	b, level := restartBackoff(v.pod, c), h.Backoff.Level
	if limit := b.delay(level); b.next(level) == level && h.Backoff.Granted.Sub(before.Exited) >= limit {
		return limit // the level does not tell the first time from the next
	}
	return b.delay(level - 1)
}

func (v *view) crashLoop(c *spec.Container, delay time.Duration) *Waiting {
	return &Waiting{Reason: ReasonCrashLoopBackOff, Message: fmt.Sprintf(
		"back-off %v restarting failed container=%s pod=%s_default(%s)", delay, c.Name, v.pod.Name, v.facts.UID)}
}

// pullWaiting shows a failed pull: the first time as what it was, after that as a back-off.
func pullWaiting(c *spec.Container, pull *Pull) *Waiting {
	if pull.Level <= 1 || !pull.Reason.ofRegistry() {
		return &Waiting{Reason: pull.Reason, Message: pull.Message}
	}
	return &Waiting{
		Reason:  ReasonImagePullBackOff,
		Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", c.Image, pull.Reason, pull.Message),
	}
}

// terminated is the state that a run which is over leaves, and no state for any other. One that a restart of all
// containers has made void says that, and not how it ended (contract 4.2).
func (v *view) terminated(a *Attempt) State {
	if !a.over() {
		return State{}
	}
	t := Terminated{
		ExitCode: a.Exit.Code, Reason: a.Exit.Reason, Message: v.message(a.Exit.Message),
		StartedAt: stamp(a.Started), FinishedAt: stamp(a.Exited), ContainerID: containerID(a.ID),
	}
	if v.facts.void(a) {
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
