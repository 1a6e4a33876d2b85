package lifecycle

import (
	"cmp"
	"time"

	"github.com/podstead/podstead/spec"
)

// StopRequested requests to stop the pod. Grace is the effective grace period ([EffectiveGrace]). A later request can shorten
// the remaining period, never extend it. It replaces a requested restart.
type StopRequested struct {
	Grace  Grace
	Delete bool
	By     string
	At     Instant
}

func (e StopRequested) apply(f *Facts) {
	f.Stop.within(e.Grace.Period, e.By, e.At)
	f.Stop.ByUser = true
	f.Stop.Force = f.Stop.Force || e.Grace.Force
	f.Stop.Delete = f.Stop.Delete || e.Delete
	f.Restart, f.Escalation = Restart{}, Escalation{}
}

// within sets the deadline of the stop. It can shorten an earlier deadline, never extend it.
func (s *Stop) within(period time.Duration, by string, at Instant) {
	if s.Requested.IsZero() {
		s.Requested, s.By = at, by
	}
	if end := at.Add(period); s.Deadline.IsZero() || end.Before(s.Deadline) {
		s.Deadline, s.Grace = end, period
	}
}

// PodEvicted reports that the pod exceeded a limit and must terminate as Failed (the kubelet's local eviction).
type PodEvicted struct {
	Message string // the resource, its usage and its limit
	At      Instant
}

func (e PodEvicted) apply(f *Facts) {
	if f.Stop.Requested.IsZero() {
		f.Stop.Reason, f.Stop.Message = ReasonEvicted, e.Message
	}
	f.Stop.within(evictionGrace, "the supervisor", e.At)
	f.Restart, f.Escalation = Restart{}, Escalation{}
}

// shutdownMessage is the kubelet's message (nodeShutdownMessage).
const shutdownMessage = "Pod was terminated in response to imminent node shutdown."

// Who stops pods at the shutdown of the host, or of Podstead only, and starts them again, as events show it.
const (
	ByShutdown    = "the shutdown of the host"
	ByStart       = "the start of the host"
	ByDaemonStop  = "the shutdown of the daemon"
	ByDaemonStart = "the start of the daemon"
)

// HostShutdown reports that the host, or Podstead on it, shuts down: the pod stops within the grace period, and fails with the kubelet's
// reason for a graceful node shutdown. [ShutdownEnded] starts it again. A pod that is stopped already gets a shorter deadline only.
type HostShutdown struct {
	Grace time.Duration
	By    string // ByShutdown or ByDaemonStop
	At    Instant
}

func (e HostShutdown) apply(f *Facts) {
	if f.Stop.Requested.IsZero() {
		f.Stop.Reason, f.Stop.Message = ReasonTerminated, shutdownMessage
	}
	f.Stop.within(e.Grace, e.By, e.At)
	f.Restart = Restart{}
}

// ShutdownEnded reports that the host or the daemon runs again after a [HostShutdown]. The pod starts again in a new round. Without a
// restart it stays failed, unless no container has run yet. It changes nothing for a pod that a client has stopped or deleted since.
type ShutdownEnded struct {
	Restart bool // the restart policy of the pod allows a restart, see [Restarts]
	At      Instant
}

func (e ShutdownEnded) apply(f *Facts) {
	if !f.startsAfterShutdown(e.Restart) {
		return
	}
	by := ByStart
	if f.Stop.By == ByDaemonStop {
		by = ByDaemonStart
	}
	f.Stop = Stop{}
	f.Restart = Restart{Requested: e.At, By: by}
}

// startsAfterShutdown reports whether the host shuts down, and [ShutdownEnded] starts the pod again.
func (f *Facts) startsAfterShutdown(restarts bool) bool {
	return f.Stop.Reason == ReasonTerminated && !f.Stop.ByUser && (restarts || !f.anyRan())
}

// anyRan reports whether a container has run.
func (f *Facts) anyRan() bool {
	for _, c := range f.Containers {
		if c.Newest.ran() || c.Previous.ran() {
			return true
		}
	}
	return false
}

// Restarts reports whether the restart policy of the pod allows to start it again after the host was shut down.
func Restarts(pod *spec.Pod) bool { return pod.RestartPolicy != spec.RestartNever || pod.Retries() }

// deadlineMessage is the kubelet's message for a pod that exceeded its activeDeadlineSeconds.
const deadlineMessage = "Pod was active on the node longer than the specified deadline"

// backoffLimitMessage is the message of the Job controller for a Job that exceeded its backoffLimit.
const backoffLimitMessage = "Job has reached the specified backoff limit"

// FailPod terminates the pod as Failed within its grace period (activeDeadlineSeconds, contract 7.5; backoffLimit; the end of its Job). A
// pod that is stopping keeps its grace period. See [RecordOnly].
type FailPod struct {
	Reason  Reason
	Message string
	Grace   time.Duration
}

func (a FailPod) issued(f *Facts, at Instant) {
	by := "activeDeadlineSeconds"
	if a.Reason == ReasonBackoffLimit {
		by = "backoffLimit"
	}
	if a.Reason == ReasonJobComplete || a.Reason == ReasonJobFailed {
		by = "its Job"
	}
	if f.Stop.Requested.IsZero() {
		f.Stop.within(a.Grace, by, at)
	}
	f.Stop.Reason, f.Stop.Message = a.Reason, a.Message
}

func (FailPod) failed(*Facts, Failure, Instant) {}

// failExpired fails a pod that exceeded its activeDeadlineSeconds, and reports whether it did. The deadline counts from
// acceptance, or from a restart of the pod that was requested since, includes image pulls and init containers, and applies to a
// terminating pod until no process is left (contract 2.1). It does not apply while a restart of the pod is pending, which resets it.
func (p *plan) failExpired() bool {
	limit, stop := p.pod.ActiveDeadlineSeconds, &p.facts.Stop
	if limit == nil || stop.Reason != "" || p.facts.Restart.pending() {
		return false
	}
	if Terminating(p.pod, *p.facts) && !p.facts.anyLive() {
		return false
	}
	if !p.due(p.facts.activeSince().Add(limit.Duration())) {
		return false
	}
	p.do(FailPod{Reason: ReasonDeadlineExceeded, Message: deadlineMessage, Grace: EffectiveGrace(p.pod, nil).Period})
	return true
}

// failures is the number of runs of containers that have failed.
func failures(pod *spec.Pod, f *Facts) (n int) {
	for c := range containersOf(pod) {
		n += countedFailures(pod, f, c)
	}
	return n
}

// countedFailures is the number of runs of a container that have failed. Those of sidecars do not count.
func countedFailures(pod *spec.Pod, f *Facts, c *spec.Container) int {
	switch h := f.Container(c.Name); {
	case !isInit(pod, c):
		return h.Failures
	case c.IsSidecar():
		return 0
	default:
		return h.Failures + h.OOMKills
	}
}

// failedTooOften reports whether the containers of a pod have failed more often than its backoffLimit allows.
func failedTooOften(pod *spec.Pod, f *Facts) bool {
	return pod.BackoffLimit != nil && failures(pod, f) > int(*pod.BackoffLimit)
}

// restartsFailed reports whether a container that has failed may be restarted.
func restartsFailed(pod *spec.Pod, f *Facts) bool {
	for c := range containersOf(pod) {
		if countedFailures(pod, f, c) > 0 && (restartPolicy(pod, c) != spec.RestartNever || len(c.RestartPolicyRules) > 0) {
			return true
		}
	}
	return false
}

// failRetried fails a pod whose containers have failed more often than its backoffLimit allows, and reports whether it did. A pod that is
// not retried at all finishes by itself first, as the pod of a Job does under the restart policy Never, unless a container that has failed
// has another policy of its own. One that has succeeded stays so.
func (p *plan) failRetried() bool {
	if !p.facts.Stop.Requested.IsZero() || p.facts.Restart.pending() || !failedTooOften(p.pod, p.facts) {
		return false
	}
	ended := finished(p.pod, p.facts)
	if !ended && p.pod.RestartPolicy == spec.RestartNever && !p.pod.Retries() && !restartsFailed(p.pod, p.facts) {
		return false
	}
	if ended && StatusOf(p.pod, *p.facts, p.now).Phase != PhaseFailed {
		return false
	}
	p.do(FailPod{Reason: ReasonBackoffLimit, Message: backoffLimitMessage, Grace: EffectiveGrace(p.pod, nil).Period})
	return true
}

// terminate stops the pod: containers first, then the sandbox, then, if the pod was deleted, everything else.
func (p *plan) terminate(why Reason) {
	if p.cancelPulls()+p.stopAll(why) > 0 {
		return
	}
	switch s := &p.facts.Sandbox; {
	case s.inFlight():
	case s.mayExist():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	case p.facts.Stop.Delete && p.removable(&p.facts.Removal):
		p.do(RemovePod{})
	case !p.facts.Stop.ByUser && !p.facts.Collection.Requested.IsZero() && p.removable(&p.facts.Collection.Removal):
		p.do(CollectPod{})
	}
}

// stopAll stops all containers and returns the number of those that have not terminated. Sidecars support the app containers and
// the sidecars before them, so each gets its stop signal after the following ones have terminated (contract 7.3). Init
// containers and ephemeral containers are stopped at once. A restart of all containers does not stop ephemeral containers
// (contract 4.2). Removed containers are stopped by [plan.retire].
func (p *plan) stopAll(why Reason) int {
	busy := 0
	for i := range p.pod.Containers {
		h := p.facts.Container(p.pod.Containers[i].Name)
		if h.Newest.live() {
			busy++
			p.stop(&p.pod.Containers[i], &h.Newest, why, true)
		}
	}
	ahead := busy
	if why != ReasonRestartingAllContainers {
		busy += p.stopEphemeralContainers(why)
	}
	for i := len(p.pod.InitContainers) - 1; i >= 0; i-- {
		c := &p.pod.InitContainers[i]
		h := p.facts.Container(c.Name)
		if !h.Newest.live() {
			continue
		}
		busy++
		p.stop(c, &h.Newest, why, ahead == 0 || !c.IsSidecar())
		if c.IsSidecar() {
			ahead++
		}
	}
	return busy + p.retiring()
}

// stop terminates one run: preStop hook, stop signal, SIGKILL after the grace period, and SIGKILL again while the process
// exists. A start in progress is awaited, and its process is stopped then. A run whose turn has not come delays the stop signal,
// but not the preStop hook, and at most until its grace period ends. A run of an earlier definition is stopped with its hook.
func (p *plan) stop(c *spec.Container, a *Attempt, why Reason, turn bool) {
	c = p.facts.definition(c, a)
	switch {
	case a.Started.IsZero() && a.Retry.IsZero():
	case a.Started.IsZero():
		p.kill(a)
	case p.facts.Stop.Force, a.StopRequested.IsZero() && !a.KillRequested.IsZero(): // no stop signal after SIGKILL
		p.kill(a)
	case a.StopRequested.IsZero():
		p.signal(c, a, why, turn)
	case p.due(p.killDue(a)):
		p.kill(a)
	case !a.SignalFailed.IsZero() && p.due(a.SignalFailed.Add(unavailableDelay)):
		p.do(StopContainer{Ref: a.Ref, Grace: a.StopGrace, Reason: a.StopReason})
	}
}

// hookDue reports whether a hook must be run: it was not run yet, or its retry is due after the engine was unavailable.
func (p *plan) hookDue(h *Hook) bool {
	return h.Requested.IsZero() || (!h.Retry.IsZero() && p.due(h.Retry.Add(unavailableDelay)))
}

// signal sends the stop signal after the preStop hook. The hook counts against the grace period, but the process has
// [minimumGrace] afterwards. There is no hook if no grace period is left.
func (p *plan) signal(c *spec.Container, a *Attempt, why Reason, turn bool) {
	left := p.remainingGrace(c, a, why)
	hooked := !hasPreStop(c) || !a.PreStop.Done.IsZero()
	switch {
	case left <= 0 || (hooked && turn):
		p.do(StopContainer{Ref: a.Ref, Grace: max(left, minimumGrace), Reason: cmp.Or(a.StopReason, why)})
	case !hooked && p.hookDue(&a.PreStop):
		p.do(RunPreStop{Ref: a.Ref, Limit: left, Reason: why})
	case hooked && a.TerminationRequested.IsZero():
		p.do(WaitForTurn{Ref: a.Ref, Limit: left, Reason: why})
	default:
		p.due(p.now.Add(left))
	}
}

// grace returns the grace period of a run that must stop while its pod continues, or after the pod has finished. It is that of the
// definition that the run was started from. The probe that stops it can have its own period (contract 5.1 and 7.1).
func (p *plan) grace(c *spec.Container, a *Attempt, why Reason) time.Duration {
	probe := map[Reason]*spec.Probe{ReasonLivenessProbe: c.LivenessProbe, ReasonStartupProbe: c.StartupProbe}[why]
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		return probe.TerminationGracePeriodSeconds.Duration()
	}
	if o := p.facts.earlier(c.Name, a.N()); o != nil {
		return o.Grace
	}
	return p.pod.TerminationGracePeriodSeconds.Duration()
}

// remainingGrace returns what is left of the grace period of a run that got no stop signal yet. The period starts when
// termination of the run is requested. The deadline of the pod can only shorten it. A restart of all containers gives no grace
// period (contract 4.2).
func (p *plan) remainingGrace(c *spec.Container, a *Attempt, why Reason) time.Duration {
	stop := &p.facts.Stop
	switch {
	case why == ReasonRestartingAllContainers:
		return 0
	case a.TerminationRequested.IsZero() && stop.Requested.IsZero():
		return p.grace(c, a, why)
	}
	return earlier(a.TerminationRequested.Add(a.TerminationGrace), stop.Deadline).Sub(p.now)
}

// killDue returns when a stopped run is killed. A deadline that was set or shortened after the stop signal applies, but the
// process has [minimumGrace].
func (p *plan) killDue(a *Attempt) Instant {
	due := a.StopRequested.Add(a.StopGrace)
	if stop := p.facts.Stop; !stop.Requested.IsZero() && stop.Deadline.Before(due) {
		due = later(stop.Deadline, a.StopRequested.Add(minimumGrace))
	}
	return due
}

func (p *plan) kill(a *Attempt) {
	signalFailed := !a.SignalFailed.IsZero() && p.due(a.SignalFailed.Add(unavailableDelay))
	if a.KillRequested.IsZero() || signalFailed || p.due(a.KillRequested.Add(killRepeat)) {
		p.do(KillContainer{Ref: a.Ref})
	}
}

// cancelHooks cancels the hooks of a run that is stopped: the postStart hook at the start of its termination, the preStop hook
// when the signal is sent (deviations 1 and 2).
func (p *plan) cancelHooks(a *Attempt) {
	signalled := a.terminated() || !a.StopRequested.IsZero() || !a.KillRequested.IsZero()
	if h := &a.PostStart; h.inFlight() && h.Cancelled.IsZero() && (signalled || a.terminating()) {
		p.do(CancelHook{Ref: a.Ref, Hook: PostStart})
	}
	if h := &a.PreStop; h.inFlight() && h.Cancelled.IsZero() && signalled {
		p.do(CancelHook{Ref: a.Ref, Hook: PreStop})
	}
}

// cancelPulls cancels image pulls in progress and returns their number. A pull does not depend on the sandbox, so only the
// termination of the pod cancels it.
func (p *plan) cancelPulls() int {
	busy := 0
	for _, list := range [...][]spec.Container{p.pod.Containers, p.pod.InitContainers, p.facts.Ephemeral} {
		for i := range list {
			if p.cancelPull(list[i].Name) {
				busy++
			}
		}
	}
	return busy
}

// cancelPull cancels the pull of a container's image if it is in progress, and reports whether it is.
func (p *plan) cancelPull(container string) bool {
	pull := &p.facts.Container(container).Pull
	if pull.inFlight() && pull.Cancelled.IsZero() {
		p.do(CancelPull{Container: container, For: pull.For})
	}
	return pull.inFlight()
}

// stopEphemeralContainers stops the ephemeral containers and returns how many are running. They are stopped at once, and no
// other container waits for them.
func (p *plan) stopEphemeralContainers(why Reason) int {
	busy := 0
	for i := range p.facts.Ephemeral {
		c := &p.facts.Ephemeral[i]
		if h := p.facts.Container(c.Name); h.Newest.live() {
			busy++
			p.stop(c, &h.Newest, why, true)
		}
	}
	return busy
}

// removable reports whether a removal is neither done nor in progress, and its retry is due.
func (p *plan) removable(r *Removal) bool {
	return r.Done.IsZero() && !r.pending() && (r.Failed.IsZero() || p.due(r.Failed.Add(retryDelay)))
}

// cleanUp cancels hooks that are no longer needed and removes terminated runs. It keeps the newest terminated run of each
// container for inspection. A deleted pod is removed as a whole by [RemovePod].
func (p *plan) cleanUp() {
	for _, list := range [...][]spec.Container{p.pod.InitContainers, p.pod.Containers} {
		for i := range list {
			h := p.facts.Container(list[i].Name)
			p.cancelHooks(&h.Newest)
			if p.facts.Stop.Delete {
				continue
			}
			if h.Previous.terminated() && h.Newest.terminated() && p.removable(&h.Previous.Removal) {
				p.do(RemoveContainer{Ref: h.Previous.Ref})
			}
		}
	}
}

// retiring returns the number of removed containers that have not stopped.
func (p *plan) retiring() int {
	busy := 0
	for i := range p.facts.Outgoing {
		o := &p.facts.Outgoing[i]
		if h := p.facts.Container(o.Container.Name); o.Removed && (h.Newest.live() || h.Pull.inFlight()) {
			busy++
		}
	}
	return busy
}

// retire stops the containers that a change of the definition removed, removes their records, and forgets them. They are stopped
// at once.
func (p *plan) retire() {
	for i := range p.facts.Outgoing {
		o := &p.facts.Outgoing[i]
		if !o.Removed {
			continue
		}
		h := p.facts.Container(o.Container.Name)
		p.cancelHooks(&h.Newest)
		if p.cancelPull(o.Container.Name) {
			continue
		}
		if h.Newest.live() {
			p.stop(&o.Container, &h.Newest, ReasonContainerRemoved, true)
		} else if !p.facts.Stop.Delete { // a deleted pod is removed as a whole
			p.forget(o.Container.Name, h)
		}
	}
}

// forget removes the record of the newest run that has one, which removes all older ones, and then forgets the container.
func (p *plan) forget(name string, h *Container) {
	last := &h.Newest
	if !last.ran() {
		last = &h.Previous
	}
	switch {
	case !last.ran() || !last.Removal.Done.IsZero():
		p.do(ForgetContainer{Container: name})
	case p.removable(&last.Removal):
		p.do(RemoveContainer{Ref: last.Ref})
	}
}

// ForgetContainer drops the facts about a removed container of which nothing is left. See [RecordOnly].
type ForgetContainer struct{ Container string }

func (a ForgetContainer) issued(f *Facts, _ Instant) {
	h := f.Container(a.Container)
	f.Forgotten = max(f.Forgotten, h.Newest.N(), h.Pull.For)
	delete(f.Containers, a.Container)
	f.dropOutgoing(a.Container)
}

func (ForgetContainer) failed(*Facts, Failure, Instant) {}

// Finished returns when a pod finished, if nothing of it runs and only a request of a user or a change of its file can start it again. It
// is zero for other pods, for a pod that a user has stopped or is deleting, and for one that starts again after the shutdown of the host.
// It follows the monotonic clock also where the exit of a container is known by the wall clock only.
func Finished(pod *spec.Pod, f Facts) Instant {
	if f.Stop.ByUser || f.Restart.pending() || !f.Idle() || !Terminating(pod, f) || f.startsAfterShutdown(Restarts(pod)) {
		return Instant{}
	}
	at := f.Accepted
	latest := func(t Instant) {
		if !t.IsZero() {
			at = later(at, t)
		}
	}
	for _, t := range [...]Instant{f.Stop.Requested, f.Sandbox.Removal.Done, f.Sandbox.Lost, f.Sandbox.Failed} {
		latest(t)
	}
	for _, c := range f.Containers {
		latest(c.Newest.Exited)
	}
	return at
}

// Collected reports whether what the pod has left was removed.
func (f Facts) Collected() bool { return !f.Collection.Removal.Done.IsZero() }

// CollectionRequested requests to remove what a pod that has finished has left: containers, pod-local volumes, logs except the end of
// the newest ones. It changes nothing if the pod is being deleted, or after another request since the pod was last started.
type CollectionRequested struct{ At Instant }

func (e CollectionRequested) apply(f *Facts) {
	if !f.Stop.Delete {
		set(&f.Collection.Requested, e.At)
	}
}

// CollectPod removes what a pod that has finished has left. See [CollectionRequested].
type CollectPod struct{}

func (CollectPod) issued(f *Facts, at Instant) { f.Collection.Removal = Removal{Requested: at} }

func (CollectPod) failed(f *Facts, _ Failure, at Instant) { f.Collection.Removal.fail(at) }

// PodCollected is the outcome of [CollectPod].
type PodCollected struct{ At Instant }

func (e PodCollected) apply(f *Facts) {
	if f.Collection.Removal.pending() { // a pod that was started again has a new sandbox
		f.Collection.Removal.Done = e.At
	}
}
