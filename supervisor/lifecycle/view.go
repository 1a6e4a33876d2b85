package lifecycle

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
)

// StatusOf computes the status of a pod. Times are wall clock times in whole seconds, as in Kubernetes. The conditions have no
// transition times yet: see [Status.Since].
func StatusOf(pod *spec.Pod, f Facts, now Instant) Status {
	v := view{pod: pod, facts: &f, now: now, ended: Terminating(pod, f)}
	s := Status{
		ObservedGeneration: f.Generation(), StartTime: stamp(f.Accepted), QOSClass: pod.QOS(), AllocatedResources: pod.EffectiveRequests(),
		Resources:             pod.OwnResources(),
		InitContainerStatuses: slices.Grow([]ContainerStatus(nil), len(pod.InitContainers)),
		ContainerStatuses:     slices.Grow([]ContainerStatus(nil), len(pod.Containers)),
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

// view is a status under construction.
type view struct {
	pod   *spec.Pod
	facts *Facts
	now   Instant
	ended bool // the pod is terminating: no container is started any more

	none Attempt // no run
}

// allStopped reports whether the pod is terminating and no container can run.
func (v *view) allStopped() bool {
	return v.ended && !v.facts.anyLive()
}

// records returns the newest run that has a record, and the run before it. In a new round, the only information left of the init
// containers of an earlier round is the number of their restarts, except for one that has failed and is not started again yet.
func (v *view) records(h *Container, r role) (newest, before *Attempt) {
	newest, before = &h.Newest, &h.Previous
	if !newest.ran() {
		newest, before = before, &v.none
	}
	earlier := newest.Round != v.facts.Round && !v.facts.wasReset(newest)
	if earlier && !v.ended && (r == roleSidecar || r == roleInit && !h.Newest.countsAsFailed()) {
		newest, before = &Attempt{Restarts: newest.Restarts}, &v.none
	}
	return newest, before
}

// initialized reports whether an app container has run, or all init containers have completed and all sidecars are started. A sidecar that
// terminates before the first app container has run makes it false, even if that container is about to start (contract 2.2).
func (v *view) initialized() bool {
	for i := range v.pod.Containers {
		if h := v.facts.Container(v.pod.Containers[i].Name); h.Newest.ran() || h.Previous.ran() {
			return true
		}
	}
	for i := range v.pod.InitContainers {
		c := &v.pod.InitContainers[i]
		if a := &v.facts.Container(c.Name).Newest; !initPassed(c, a, v.facts.Round) {
			return false
		}
	}
	return true
}

// phase computes the phase from the container statuses as the kubelet does (contract 2.1). Two differences make it shorter: no
// container state is unknown, and the phase is terminal if and only if the pod is terminating and no container can run.
func (v *view) phase(s *Status) Phase {
	if v.allStopped() {
		if v.facts.Stop.Reason != "" {
			return PhaseFailed
		}
		for i := range s.ContainerStatuses {
			if end := s.ContainerStatuses[i].State.Terminated; end == nil || end.ExitCode != 0 {
				return PhaseFailed
			}
		}
		return PhaseSucceeded
	}
	for i := range s.InitContainerStatuses {
		if c := &s.InitContainerStatuses[i]; v.pod.InitContainers[i].IsSidecar() {
			if c.State.Running == nil && lastTermination(c) == nil || c.State.Running != nil && !*c.Started && !v.running() {
				return PhasePending
			}
		} else if lastTermination(c) == nil {
			return PhasePending
		}
	}
	for i := range s.ContainerStatuses {
		if c := &s.ContainerStatuses[i]; c.State.Running == nil && lastTermination(c) == nil {
			return PhasePending
		}
	}
	return PhaseRunning
}

// running reports whether an app container has run in this round (podHasInitialized of the kubelet), also if its next run has no
// outcome yet.
func (v *view) running() bool {
	for i := range v.pod.Containers {
		h := v.facts.Container(v.pod.Containers[i].Name)
		if a, _ := v.records(h, roleApp); a.Round == v.facts.Round && a.ran() {
			return true
		}
	}
	return false
}

// lastTermination returns how the container last terminated; nil if it is running or has not run.
func lastTermination(c *ContainerStatus) *Terminated {
	switch {
	case c.State.Running != nil:
		return nil
	case c.State.Terminated != nil:
		return c.State.Terminated
	default:
		return c.LastState.Terminated
	}
}

// Completed reports whether a pod with these conditions has completed, in phase Succeeded or Failed.
func Completed(conditions []Condition) bool {
	return slices.ContainsFunc(conditions, func(c Condition) bool {
		return c.Type == ContainersReady && (c.Reason == ReasonPodCompleted || c.Reason == ReasonPodFailed)
	})
}

func (v *view) container(c *spec.Container, r role) ContainerStatus {
	h := v.facts.Container(c.Name)
	newest, before := v.records(h, r)
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
		if newest.Resources != nil && newest.live() {
			s.Resources = newest.Resources
		}
	}
	waiting := v.waiting(c, h, newest, r)
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
		if end := s.State.Terminated; end.Message == "" && Exhausted(v.pod, *v.facts, c.Name) {
			end.Message = fmt.Sprintf("The container has reached its maxRestarts of %d", *c.MaxRestarts)
		}
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
	if newest.ran() || v.facts.Container(c.Name).Newest.Round == v.facts.Round {
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
		last := &v.facts.Container(inits[len(inits)-1].Name).Newest
		return last.terminated() && !initFailed(last.Exit) || v.reachedApps()
	}
	return v.reachedApps()
}

// reachedApps reports whether all init containers have passed in this round, or an app container has been due in any round.
func (v *view) reachedApps() bool {
	for i := range v.pod.Containers {
		if pull := &v.facts.Container(v.pod.Containers[i].Name).Pull; pull.For > 0 && !pull.staged() || !pull.Cancelled.IsZero() {
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
	switch a := &h.Newest; {
	case a.Exit.Reason == ReasonStartError && v.waitedDelay(c, h, &h.Previous) == 0:
		return &Waiting{Reason: ReasonRunContainerError, Message: a.Exit.Message}
	case a.StopReason == ReasonFailedPostStartHook && v.waitedDelay(c, h, &h.Previous) == 0:
		return &Waiting{Reason: ReasonPostStartHookError, Message: a.PostStart.Message}
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
	return &Waiting{Reason: ReasonCrashLoopBackOff, Message: "back-off " + delay.String() + " restarting failed container=" + c.Name +
		" pod=" + v.pod.Name + "_default(" + v.facts.UID + ")"}
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

// maxMessages is the maximum total size of the termination messages of a pod in bytes (the kubelet's
// MaxPodTerminationMessageLogLength).
const maxMessages = 12288

// message truncates a termination message to the container's share of the limit. All containers of the pod have equal shares
// (contract 8.1).
func (v *view) message(text string) string {
	share := maxMessages / (len(v.pod.InitContainers) + len(v.pod.Containers) + len(v.facts.Ephemeral))
	return strings.ToValidUTF8(text[:min(len(text), share)], "") // drop a truncated rune
}

// RunsAgain reports whether a terminated container will be restarted. It is false if the pod is terminating, and for a container
// that is not in the pod's definition, such as an ephemeral one.
func RunsAgain(pod *spec.Pod, f Facts, container string) bool {
	if Terminating(pod, f) {
		return false
	}
	v, a := view{pod: pod, facts: &f}, &f.Container(container).Newest
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; c.Name == container {
			return v.runsAgain(c, a, roleOf(c))
		}
	}
	for i := range pod.Containers {
		if c := &pod.Containers[i]; c.Name == container {
			return v.runsAgain(c, a, roleApp)
		}
	}
	return false
}

// runsAgain reports whether a terminated run will be followed by another one.
func (v *view) runsAgain(c *spec.Container, a *Attempt, r role) bool {
	switch {
	case v.ended || r == roleEphemeral:
		return false
	case v.facts.superseded(a) || r == roleSidecar:
		return true
	case r == roleInit:
		return initFailed(a.Exit) || a.interrupted()
	}
	return v.facts.shouldRestart(v.pod, c, a)
}

// RestartDelay returns the back-off between the exit of a container and its next run. It is 0 if there is no next run, no delay,
// or the delay has passed.
func RestartDelay(pod *spec.Pod, f Facts, container string, now Instant) time.Duration {
	h := f.Container(container)
	c := pod.Container(container)
	if c == nil || !h.Newest.terminated() || !RunsAgain(pod, f, container) || failedTooOften(pod, &f) {
		return 0
	}
	due, _ := restartDue(pod, &f, c, h)
	if !now.Before(due) {
		return 0
	}
	return due.Sub(h.Newest.Exited)
}

// PullDelay returns the delay before the container's image is pulled again, counted from the newest failure.
func PullDelay(f Facts, container string) time.Duration {
	return pullDelay(&f.Container(container).Pull)
}

// NextTry returns the time until the next attempt at what a container is waiting for: its sandbox, its image, its creation or
// its next run. It returns false if the container is not waiting, or if the attempt is in progress.
func NextTry(pod *spec.Pod, f Facts, container string, now Instant) (in time.Duration, known bool) {
	if Terminating(pod, f) {
		return 0, false
	}
	h := f.Container(container)
	due := Instant{}
	switch s, pull := &f.Sandbox, &h.Pull; {
	case s.Failures > 0 && !s.ready() && !s.inFlight():
		due = s.Failed.Add(sandboxDelay(s))
	case pull.Reason != "" && pull.For > h.Newest.N() && !pull.inFlight():
		due = pull.Failed.Add(pullDelay(pull))
	case !h.Newest.CreateFailed.IsZero() && h.Newest.Round == f.Round:
		due = h.Newest.CreateFailed.Add(retryDelay)
	default:
		delay := RestartDelay(pod, f, container, now)
		if delay == 0 {
			return 0, false
		}
		due = h.Newest.Exited.Add(delay)
	}
	return max(due.Sub(now), 0), true
}

// conditions computes the conditions (contract 2.2). The phase and the container statuses of s must be set.
func (v *view) conditions(s *Status) []Condition {
	ready := v.containersReady(s.Phase, false)
	list := []Condition{
		condition(PodScheduled, true, "", ""),
		condition(PodReadyToStartContainers, v.facts.Sandbox.ready(), "", ""),
		v.initializedCondition(s),
		ready,
		v.readyCondition(ready),
	}
	if len(v.pod.Conditions()) > 0 {
		list = append(list, v.waitedCondition())
	}
	if LastStep(v.pod) != StepNone {
		list = append(list, v.escalationCondition())
	}
	if hasRestartAllRule(v.pod) {
		list = append(list, v.restartingCondition(s))
	}
	if s.Phase == PhaseFailed && (v.facts.Stop.Reason == ReasonEvicted || v.facts.Stop.Reason == ReasonTerminated) {
		list = append(list, condition(DisruptionTarget, true, ReasonTerminationByKubelet, v.facts.Stop.Message))
	}
	if c, present := v.resizeCondition(); present {
		list = append(list, c)
	}
	for _, t := range slices.Sorted(maps.Keys(v.facts.Conditions)) {
		c := v.facts.Conditions[t]
		list = append(list, Condition{Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message})
	}
	return list
}

// readyCondition computes the condition Ready: all containers are ready, and the condition of every readiness gate is True
// (contract 2.2).
func (v *view) readyCondition(ready Condition) Condition {
	ready.Type = PodReady
	if ready.Status != conditionTrue {
		return ready
	}
	var open []string
	for _, g := range v.pod.ReadinessGates {
		c, known := v.facts.Conditions[ConditionType(g.ConditionType)]
		switch {
		case !known:
			open = append(open, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		case c.Status != conditionTrue:
			open = append(open,
				fmt.Sprintf("the status of pod readiness gate %q is not %q, but %v", g.ConditionType, conditionTrue, c.Status))
		}
	}
	if len(open) > 0 {
		return condition(PodReady, false, ReasonReadinessGatesNotReady, strings.Join(open, ", "))
	}
	return ready
}

// unready iterates over the sidecars and app containers that are not ready, in the order of the pod file. With over, containers that do not
// run again count as ready.
func (v *view) unready(over bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range v.pod.InitContainers {
			if c := &v.pod.InitContainers[i]; c.IsSidecar() && !v.isReady(c, roleSidecar) && !yield(c.Name) {
				return
			}
		}
		for i := range v.pod.Containers {
			if c := &v.pod.Containers[i]; !v.isReady(c, roleApp) && (!over || !v.over(c)) && !yield(c.Name) {
				return
			}
		}
	}
}

// isReady reports whether a sidecar or an app container is ready, as its status has it.
func (v *view) isReady(c *spec.Container, r role) bool {
	h := v.facts.Container(c.Name)
	newest, _ := v.records(h, r)
	return newest.ready(v.facts.definition(c, newest))
}

func (v *view) containersReady(p Phase, over bool) Condition {
	if p == PhaseSucceeded {
		return condition(ContainersReady, false, ReasonPodCompleted, "")
	}
	if p == PhaseFailed {
		return condition(ContainersReady, false, ReasonPodFailed, "")
	}
	if names := slices.Collect(v.unready(over)); len(names) > 0 {
		return condition(ContainersReady, false, ReasonContainersNotReady,
			"containers with unready status: ["+strings.Join(names, " ")+"]")
	}
	return condition(ContainersReady, true, "", "")
}

func (v *view) initializedCondition(s *Status) Condition {
	if s.Phase == PhaseSucceeded {
		return condition(PodInitialized, true, ReasonPodCompleted, "")
	}
	if v.initialized() {
		return condition(PodInitialized, true, "", "")
	}
	var names []string
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		done := c.Ready
		if v.pod.InitContainers[i].IsSidecar() {
			done = *c.Started
		}
		if !done {
			names = append(names, c.Name)
		}
	}
	return condition(PodInitialized, false, ReasonContainersNotInitialized,
		"containers with incomplete status: ["+strings.Join(names, " ")+"]")
}

// restartingCondition is true while a restart of all containers stops those of the previous round.
func (v *view) restartingCondition(s *Status) Condition {
	if s.Phase == PhaseSucceeded {
		return condition(AllContainersRestarting, false, ReasonPodCompleted, "")
	}
	if s.Phase == PhaseFailed {
		return condition(AllContainersRestarting, false, ReasonPodFailed, "")
	}
	by := restartAllTrigger(v.pod, v.facts)
	switch {
	case by == (Ref{}) || !v.facts.Stop.Requested.IsZero():
		return condition(AllContainersRestarting, false, "", "")
	case Retry(v.pod, *v.facts, by.Container) > 0:
		return condition(AllContainersRestarting, true, ReasonAllContainersRestarting, "container failed, the pod is retried")
	}
	return condition(AllContainersRestarting, true, ReasonAllContainersRestarting, "container exited with restart policy rule")
}

// waitedCondition is true when everything that the pod waits for before it starts was met.
func (v *view) waitedCondition() Condition {
	if message := waitMessage(v.pod, v.facts); message != "" {
		return condition(PodWaitedFor, false, ReasonWaitingFor, message)
	}
	return condition(PodWaitedFor, !v.facts.Wait.Ended.IsZero() || v.facts.Sandbox.ready(), "", "")
}

// waitMessage states what the pod waits for; empty if it does not wait.
func waitMessage(pod *spec.Pod, f *Facts) string {
	unmet := Unmet(pod, *f)
	if len(unmet) == 0 {
		return ""
	}
	texts := make([]string, len(unmet))
	for i, condition := range unmet {
		texts[i] = spec.ParseWaitCondition(condition).String()
		if message := f.Wait.Conditions[condition].Message; message != "" {
			texts[i] += ": " + message
		}
	}
	return "waiting for " + strings.Join(texts, ", ")
}

// escalationCondition computes the condition Unhealthy: whether the pod is unready for so long that a step was taken.
func (v *view) escalationCondition() Condition {
	e, last := &v.facts.Escalation, LastStep(v.pod)
	var message string
	reason := Reason("")
	switch e.Step {
	case StepNone:
	case StepRestart:
		reason, message = ReasonContainersRestarted, "all containers were restarted"
	case StepReplace:
		reason, message = ReasonSandboxReplaced, "the pod sandbox was replaced"
	case StepReboot:
		reason, message = ReasonHostRebootRequested, "a reboot of the host was requested"
		if r := &e.Reboot; !r.Failed.IsZero() {
			reason, message = r.Reason, "the host is not rebooted: "+r.Message
		}
	}
	if message != "" {
		message = fmt.Sprintf("step %d of %d, at %s: %s", e.Step, last, stamp(e.At).Format(time.RFC3339), message)
	}
	if !e.Since.IsZero() {
		next := fmt.Sprintf("unready, next step at %s: %v", stamp(e.due(v.pod.UnhealthyAfter())).Format(time.RFC3339), min(e.Step+1, last))
		if message != "" {
			message += "; "
		}
		message += next
	}
	return condition(PodUnhealthy, e.Step != StepNone, reason, message)
}

// over reports whether an app container has terminated and does not run again. No step changes that.
func (v *view) over(c *spec.Container) bool {
	a := &v.facts.Container(c.Name).Newest
	return a.terminated() && !v.runsAgain(c, a, roleApp)
}

// ready reports whether the condition Ready is True. With over, containers that do not run again count as ready.
func (v *view) ready(over bool) bool {
	for range v.unready(over) {
		return false
	}
	return v.readyCondition(condition(ContainersReady, true, "", "")).Status == conditionTrue
}

// readyNow computes the condition Ready of a pod that has not terminated.
func (v *view) readyNow(over bool) Condition { return v.readyCondition(v.containersReady("", over)) }
