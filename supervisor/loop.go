package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

const (
	// maxSleep limits how long a loop waits without reading the clock. Go timers stop while the host is suspended, the clock of the facts
	// does not.
	maxSleep = time.Minute
	// maxDecisions limits the decisions of one turn. They normally reach a fixed point after a few.
	maxDecisions = 1000
	// panicPause limits the CPU time of a pod whose turns panic.
	panicPause = 10 * time.Second
)

// loop runs one pod. A turn handles the messages in the mailbox, decides what to do, starts the actions and publishes a snapshot. The
// definition and all fields below facts belong to the goroutine of run.
type loop struct {
	name    string
	pod     *spec.Pod // without ephemeral containers, for decisions
	uid     string
	owner   state.Owner
	shared  *shared
	log     *slog.Logger
	mailbox mailbox
	writer  *state.Writer
	effects *effects
	changed func()        // reports a new snapshot
	ended   chan struct{} // closed when run has returned
	ready   chan struct{} // closed after the first turn: until then the snapshot is that of an earlier supervisor

	snapshot  atomic.Pointer[Snapshot]
	fullPod   atomic.Pointer[spec.Pod] // with ephemeral containers, for everything but decisions
	staging   atomic.Pointer[pulls]    // what is pulled for a new definition of the pod; nil: nothing
	markReady func()                   // closes ready

	facts         lifecycle.Facts
	status        lifecycle.Status
	events        *emit.Emitter
	waiting       []message // to be handled before the next decision
	dirty         bool      // the facts must be saved before anything is started
	checkpointDue bool      // the facts have something for the checkpoint
	pulling       pulls
	begun         map[string]string // by container: the archive whose import has an event; empty: that of the pull
	saved         *state.Write      // the newest write of the state; nil: there was none
	savedAt, read lifecycle.Instant // when the newest write was scheduled, and the newest reading of the clock
	redefined     bool              // the runtime does not have the newest definition of a pod that runs
	health        health
}

// run runs the pod until it is removed or ctx ends, which leaves its containers running. When it returns, all effects have ended and the
// newest state is saved. It reports whether the pod was removed.
func (l *loop) run(ctx context.Context, first startup) (removed bool) {
	defer close(l.ended)
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	ctx, stop := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		l.writer.Run(writing, func(err error) { l.mailbox.post(ctx, stateWritten{err}) })
	})
	defer func() {
		stop()
		if removed {
			l.writer.Drop()
		} else {
			l.writer.Put(l.state(l.shared.now()))
		}
		stopWriting()
		writer.Wait()
		if removed {
			l.deleteState()
		}
	}()
	l.waiting = []message{first}
	for {
		if removed = l.runUntilPanic(ctx); removed || ctx.Err() != nil {
			return removed
		}
	}
}

// runUntilPanic takes turns until the pod is removed, ctx ends, or a turn panics, and then ends all effects. A panic may lose what the
// turn has started or received. The next call therefore continues like a restarted supervisor: it repeats actions without a result and
// watches what runs.
func (l *loop) runUntilPanic(ctx context.Context) (removed bool) {
	ctx, stop := context.WithCancel(ctx)
	defer l.effects.running.Wait()
	defer stop()
	l.effects.forgetWatches() // those of the call before have ended
	for len(l.mailbox) > 0 {
		l.waiting = append(l.waiting, <-l.mailbox)
	}
	panicked, removed := l.turns(ctx)
	if panicked {
		select {
		case <-time.After(panicPause):
		case <-ctx.Done():
		}
	}
	return removed
}

// turns takes turns until the pod is removed or ctx ends. After a panic the facts, which are immutable, are those before its event.
func (l *loop) turns(ctx context.Context) (panicked, removed bool) {
	defer l.markReady()
	defer func() {
		if r := recover(); r != nil {
			l.log.LogAttrs(ctx, slog.LevelError, "a turn panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			l.emit(l.shared.now(), api.EventInternalError, "", event.Fields{"error": fmt.Sprint(r)})
			panicked = true
		}
	}()
	timer := time.NewTimer(maxSleep)
	defer timer.Stop()
	for resumed := false; ; {
		now := l.shared.now() // a turn does not read it again
		l.correctTimes(now)
		for len(l.waiting) > 0 {
			m := l.waiting[0]
			l.waiting = l.waiting[1:] // a message that panics is lost, the ones behind it are not
			l.handle(ctx, m, now)
		}
		if !resumed {
			l.resume(ctx, now)
			resumed = true
		}
		if l.health.writeErr != nil && now.Sub(l.savedAt) >= maxSleep {
			l.dirty = true // the disk may have recovered
		}
		sleep, removed := l.reconcile(ctx, now)
		if removed {
			return false, true
		}
		l.markReady()
		timer.Reset(sleep)
		select {
		case m := <-l.mailbox:
			l.waiting = append(l.waiting, m)
		case <-timer.C:
		case <-ctx.Done():
			return false, false
		}
	}
}

// handle handles one message, unless it is of a watch that was stopped.
func (l *loop) handle(ctx context.Context, m message, now lifecycle.Instant) {
	if w, ok := m.(interface{ stale() bool }); ok && w.stale() {
		return
	}
	switch m := m.(type) {
	case startup:
		m.prepare(now)
	case changeRequest:
		m.handle(now, func() *state.Write {
			defer l.publish(now) // the client sees its change from now on
			return l.save(now)
		})
	case effectDone:
		l.effectDone(ctx, m, now)
	case pullProgress:
		l.recordPull(m, l.events.At(&l.facts, now))
	case stageProgress:
	case containerExited:
		l.engineAnswered(now)
		l.fold(m.event(now), now)
	case sandboxEnded:
		l.engineAnswered(now)
		l.fold(m.event(now), now)
	case shimChanged:
		if kind, changed := l.health.shim(m); changed {
			l.emit(now, kind, "", nil)
		}
	case volumesChanged:
		if kind, f, changed := l.health.volumes(m.why); changed {
			l.emit(now, kind, "", f)
			l.dirty = true // the next supervisor does not report it again
		}
	case probeEvents:
		for _, e := range m.events {
			l.fold(e, now)
		}
	case waitReport:
		l.fold(m.event(now), now)
	case jobEnded:
		if l.facts.Job.Ended.IsZero() {
			l.fold(lifecycle.JobEnded{Part: m.end}, now)
		}
	case deviceReport:
		l.fold(m.event(now), now)
	case heartbeat:
		close(m)
	case stateWritten:
		if kind, f, changed := l.health.written(m.err); changed {
			l.emit(now, kind, "", f)
		}
	default:
		panic(fmt.Sprintf("no handler for message %T", m))
	}
}

// effectDone folds the result of an action, and watches what the action has started.
func (l *loop) effectDone(ctx context.Context, m effectDone, now lifecycle.Instant) {
	if pull, ok := m.action.(lifecycle.PullImage); ok {
		delete(l.pulling, pull.Container)
		delete(l.begun, pull.Container)
	}
	l.effects.finished(m.action)
	l.health.removed(m.action, m.err)
	if m.err != nil {
		failure := failureOf(m.err)
		l.fold(lifecycle.ActionFailed{Action: m.action, Failure: failure, At: now}, now)
		if failure.Kind == lifecycle.FailureUnavailable {
			l.fold(lifecycle.EngineUnavailable{At: now}, now)
		}
		return
	}
	l.engineAnswered(now)
	e := completed(m.action, m.result, now)
	if hook, ok := e.(lifecycle.HookFinished); ok && m.result.warning != "" {
		l.emit(now, api.EventHookWarned, hook.Container, event.Fields{"warning": m.result.warning})
	}
	watched := l.facts.Live()
	l.fold(e, now)
	l.effects.watchContainers(ctx, l.facts.Live(), watched)
	switch e := e.(type) {
	case lifecycle.SandboxRemoved, lifecycle.PodRemoved:
		l.health.unresponsive, l.health.stale = false, "" // there is no shim, and nothing to update
	case lifecycle.SandboxStarted:
		l.effects.watchSandbox(ctx, e.Sandbox)
	}
}

// engineAnswered folds that the container engine is available again, if it was not.
func (l *loop) engineAnswered(now lifecycle.Instant) {
	if !l.facts.EngineUnavailable.IsZero() {
		l.fold(lifecycle.EngineAvailable{At: now}, now)
	}
}

// resume continues what an earlier supervisor or a turn that panicked has left: it repeats actions without a result, except for a
// reboot, and watches what runs.
func (l *loop) resume(ctx context.Context, now lifecycle.Instant) {
	l.abandonReboot(now)
	if l.facts.Resize.Issued != 0 {
		l.fold(lifecycle.ResizeInterrupted{}, now)
	}
	for _, a := range l.facts.Unresolved() {
		l.effects.start(ctx, a, podOf(l.fullPod.Load(), l.facts, a), address(l.pod, l.facts), nil)
	}
	l.effects.watchContainers(ctx, l.facts.Live(), nil)
	if n := l.facts.SandboxReady(); n > 0 {
		l.effects.watchSandbox(ctx, n)
	}
}

// reconcile decides until nothing is left to do, saves the state, starts the actions, and publishes a snapshot. It returns how long to
// sleep, and whether the pod is removed.
func (l *loop) reconcile(ctx context.Context, now lifecycle.Instant) (sleep time.Duration, removed bool) {
	var actions []lifecycle.Action
	for range maxDecisions {
		d := l.shared.decide(l.pod, l.facts, now)
		for _, a := range d.Actions {
			l.issue(a, now)
		}
		actions = append(actions, d.Actions...)
		if len(d.Actions) > 0 {
			continue
		}
		if saved := l.save(now); saved != nil {
			l.saved = saved
		}
		for _, a := range actions {
			l.effects.start(ctx, a, podOf(l.fullPod.Load(), l.facts, a), address(l.pod, l.facts), l.awaited(a))
		}
		if l.redefined {
			l.redefined = false
			l.effects.watchAgain(ctx, l.facts)
		}
		l.effects.setWatches(ctx, &d, address(l.pod, l.facts), l.facts.Wait.Since)
		l.publish(now)
		sleep = maxSleep
		if !d.Wake.IsZero() {
			sleep = min(sleep, d.Wake.Sub(now))
		}
		return sleep, d.Removed
	}
	panic(fmt.Sprintf("no fixed point after %d decisions, last action %T", maxDecisions, actions[len(actions)-1]))
}

// awaited returns the write that an action waits for. Removals do not wait for a disk that hangs or fails.
func (l *loop) awaited(a lifecycle.Action) *state.Write {
	switch a.(type) {
	case lifecycle.RemoveContainer, lifecycle.RemoveSandbox, lifecycle.RemovePod:
		if l.health.writeErr != nil {
			return nil
		}
	}
	return l.saved
}

// issue folds that an action is issued, and emits its event.
func (l *loop) issue(a lifecycle.Action, now lifecycle.Instant) {
	before := l.facts.Escalation.Step
	l.events.At(&l.facts, now).Action(a)
	l.facts = l.facts.Apply(lifecycle.Issued{Action: a, At: now})
	switch a.(type) {
	case lifecycle.CountUnready, lifecycle.PauseUnready, lifecycle.EndEscalation:
		l.escalationChanged(before)
	case lifecycle.PassTrial:
		// Not worth a write of its own: after a restart of the daemon the pod is ready for long enough, too. But a failure after that must
		// not count as one of the update.
		l.dirty = l.dirty || l.facts.Trial.RollsBack
	case lifecycle.ResizePod:
		l.dirty = l.dirty || l.facts.Resize.Failed.IsZero() // a repetition is not worth a write of its own
	case lifecycle.PullImage, lifecycle.FindImage, lifecycle.CancelPull, lifecycle.CancelHook, lifecycle.RemoveContainer:
		// Not worth a write of its own: after a restart of the daemon the action is repeated.
	default:
		l.dirty = true
	}
}

// fold folds a lifecycle event, and emits its event.
func (l *loop) fold(e lifecycle.Event, now lifecycle.Instant) {
	before := l.facts
	l.facts = l.facts.Apply(e)
	l.events.At(&l.facts, now).Folded(&before, e)
	if len(l.facts.Ephemeral) < len(before.Ephemeral) {
		l.updateFullPod()
	}
	switch e := e.(type) {
	case lifecycle.ProbeChanged, lifecycle.SignalSent:
		l.checkpointDue = true // valid until the next boot: not worth a write to the disk
	case lifecycle.ContainerStarted:
		l.checkpointDue, l.dirty = true, true // nothing waits for the write to the disk
	case lifecycle.SupervisionGap, lifecycle.ProbeFailed, lifecycle.ProbeWarned, lifecycle.EngineUnavailable, lifecycle.EngineAvailable,
		lifecycle.ConditionUnmet:
	case lifecycle.ActionFailed:
		_, resize := e.Action.(lifecycle.ResizePod)
		l.dirty = l.dirty || !resize || before.Resize.Failed.IsZero()
	case lifecycle.ImagePulled, lifecycle.ContainerRemoved:
		// Not worth a write of its own: after a restart of the daemon the action is repeated with the same result.
	default:
		l.dirty = true
	}
}

// emit emits an event that neither an action nor a lifecycle event leads to.
func (l *loop) emit(now lifecycle.Instant, kind api.EventKind, container string, f event.Fields) {
	l.events.At(&l.facts, now).Emit(kind, container, f)
}

// save schedules the checkpoint and the state file if they are due. It returns the write of the state file; nil: there is none.
func (l *loop) save(now lifecycle.Instant) *state.Write {
	if l.checkpointDue {
		l.checkpointDue = false
		l.writer.Checkpoint(state.Checkpoint{
			At: now, Starts: l.facts.Starts(), Probes: l.facts.Verdicts(), Signals: l.facts.StopSignals(), Conditions: l.conditions(now),
			Escalation: l.escalation(),
		})
	}
	if !l.dirty {
		return nil
	}
	l.dirty, l.savedAt = false, now
	return l.writer.Put(l.state(now))
}

// state returns the content of the state file.
func (l *loop) state(now lifecycle.Instant) state.Pod {
	return state.Pod{SavedAt: now, Pod: l.pod, Owner: l.owner, Facts: l.facts, Conditions: l.conditions(now)}
}

// conditions returns the conditions of the current facts. Those that differ from the published ones have changed now.
func (l *loop) conditions(now lifecycle.Instant) []lifecycle.Condition {
	return l.statusOf(now).Conditions
}

// statusOf returns the status of the current facts, with what only the supervisor knows.
func (l *loop) statusOf(now lifecycle.Instant) lifecycle.Status {
	status := lifecycle.StatusOf(l.pod, l.facts, now)
	status.Conditions = append(status.Conditions, l.health.conditions()...)
	return status.Since(l.status.Conditions, now)
}

// correctTimes corrects the wall times if the wall clock was set since the last turn, or since the state was saved.
func (l *loop) correctTimes(now lifecycle.Instant) {
	before := l.read
	l.read = now
	l.noticeGap(before, now)
	if before.IsZero() || !now.Set(before) {
		return
	}
	e := lifecycle.WallClockSet{Before: before, At: now}
	l.fold(e, now)
	l.status.Conditions = e.Correct(l.status.Conditions)
}

// publish publishes a snapshot if the status has changed. It emits a terminal phase first: a client that sees the phase finds the event.
func (l *loop) publish(now lifecycle.Instant) {
	before := l.status.Phase
	l.status = l.statusOf(now)
	if before != "" && before != l.status.Phase {
		l.events.At(&l.facts, now).Phase(l.status.Phase)
	}
	s := &Snapshot{
		Pod: l.fullPod.Load(), Owner: l.owner, Facts: l.facts, Status: l.status, Pulling: l.fetching(),
		AtRest: l.status.Phase.Terminal() && l.facts.Idle(), NotDurable: l.health.writeErr != nil,
		Outcome: lifecycle.OutcomeOf(l.pod, l.facts, &l.status),
	}
	if old := l.snapshot.Swap(s); old == nil || !old.same(s) {
		l.changed()
	}
}

// fetching returns what is pulled and imported for the pod, and for a new definition of it.
func (l *loop) fetching() map[string]lifecycle.Progress {
	all := maps.Clone(l.pulling)
	if staged := l.staging.Load(); staged != nil {
		for container, p := range *staged {
			if _, own := all[container]; !own {
				all[container] = p
			}
		}
	}
	return all
}

// deleteState deletes the state file and the checkpoint of a removed pod.
func (l *loop) deleteState() {
	err := l.shared.store.Delete(l.name)
	if l.shared.checkpoints != nil {
		err = errors.Join(err, l.shared.checkpoints.Delete(l.uid))
	}
	err = errors.Join(err, l.shared.quarantine.Forget(l.uid))
	if err != nil {
		l.emit(l.shared.now(), api.EventRemovalFailed, "", event.Fields{"what": "state file", "error": err.Error()})
	}
}

// updateFullPod adds the ephemeral containers of the facts to the pod.
func (l *loop) updateFullPod() { l.fullPod.Store(withEphemerals(l.pod, l.facts.Ephemeral)) }

// escalationChanged schedules the checkpoint. A flapping probe must not write to the disk, so only the end of an escalation that has
// taken a step is saved.
func (l *loop) escalationChanged(before lifecycle.Step) {
	l.checkpointDue = true
	l.dirty = l.dirty || l.facts.Escalation.Step != before
}

// escalation returns the escalation for the checkpoint; nil if the pod does not use it.
func (l *loop) escalation() *lifecycle.Escalation {
	if lifecycle.LastStep(l.pod) == lifecycle.StepNone {
		return nil
	}
	copied := l.facts.Escalation // written later
	return &copied
}

// noticeGap folds that the pod was not supervised since the last turn: the host was suspended.
func (l *loop) noticeGap(before, now lifecycle.Instant) {
	if !before.IsZero() && now.Sub(before) > 2*maxSleep {
		l.fold(lifecycle.SupervisionGap{At: now}, now)
	}
}

// abandonReboot folds that a request to reboot the host failed if its result is not known. It is not repeated as other actions are: the
// pod may be ready by now. Otherwise the next request follows after more unready time.
func (l *loop) abandonReboot(now lifecycle.Instant) {
	for _, a := range l.facts.Unresolved() {
		if _, is := a.(lifecycle.RebootHost); is {
			why := lifecycle.Failure{Reason: lifecycle.ReasonRebootFailed, Message: "the daemon was interrupted during the request"}
			l.fold(lifecycle.ActionFailed{Action: a, Failure: why, At: now}, now)
		}
	}
}

// answers reports whether the loop handles a message, or ends, before ctx ends.
func (l *loop) answers(ctx context.Context) bool {
	handled := make(chan struct{})
	l.mailbox.post(ctx, heartbeat(handled))
	select {
	case <-handled:
	case <-l.ended:
	case <-ctx.Done():
		return false
	}
	return true
}
