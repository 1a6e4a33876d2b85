package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// Recover restores the pods of an earlier supervisor from the saved state and the inventory of the container engine. It must be
// called once, before any other method. These are its assumptions, each with a test in recover_test.go or test/faults:
//
//  1. The supervisor may have been killed at any instruction. An issued action may have been carried out.
//  2. The engine may have newer sandboxes and attempts than the saved state, if a write was lost.
//  3. The host may have been rebooted. The boot ID shows that.
//  4. A state file may be unreadable. It is renamed, and the pod is recovered from the inventory.
//  5. A state file may be of a later version. The file and its pod are left unchanged until a client deletes the pod by force.
//  6. The supervisor may have crashed while it handled a pod, and would crash again. After a crash the pods that were being handled are
//     recovered one after the other, and those in quarantine not at all.
//  7. The engine may have containers of a pod without a state file. They are orphaned, but a pod file may define their pod: it is recovered
//     with an owner that is [state.Owner.Orphan], and keeps running. Who reads the pod files decides whether it ends. Containers of a name
//     that another pod has are stopped with their grace period and deleted at once, because no file can mean them.
func (s *Supervisor) Recover(ctx context.Context) error {
	s.restoreEvents(ctx)
	if s.shared.uncleanBoot != "" && !s.reportedPowerLoss() {
		s.shared.ring.Add(event.New(api.EventUncleanShutdown, s.shared.now().Wall, "", nil))
	}
	accused := s.judge() // first: what the crash has left must be saved even if the recovery fails
	pods, unusable, err := s.shared.store.Load()
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	list, err := s.shared.runtime.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("list containers of the engine: %w", err)
	}
	found := map[string]lifecycle.Found{}
	for _, f := range list {
		found[f.UID] = f
	}
	lost := map[string]bool{}
	for _, u := range unusable {
		kind := api.EventStateLost
		if u.Kept {
			kind = api.EventStateUnsupported
			f := foundFor(&u, list)
			s.holdNewer(&u, f)
			delete(found, f.UID)
		}
		lost[u.Name] = true
		s.shared.ring.Add(event.New(kind, s.shared.now().Wall, u.Name, event.Fields{"file": u.File, "error": u.Err.Error()}))
	}
	checkpoints := s.loadCheckpoints(pods, unusable)
	var suspects []*heldPod
	for _, p := range pods {
		uid := p.Facts.UID
		if e, is := accused[uid]; is {
			h := s.holdSuspect(&e, p, found[uid], checkpoints[uid])
			if !e.Held {
				suspects = append(suspects, h)
			}
		} else {
			s.recoverPod(p, found[uid], checkpoints[uid], func(*loop, lifecycle.Instant) {})
		}
		delete(found, uid)
	}
	for _, f := range found {
		s.recoverFound(f, lost)
	}
	if err := s.awaitFirstTurns(ctx); err != nil {
		return err
	}
	s.forgetCauses()
	close(s.recovered)
	s.loops.Go(func() { s.collect(s.ctx) })
	s.loops.Go(func() { s.endJobs(s.ctx) })
	if len(suspects) > 0 {
		s.loops.Go(func() { s.tryOut(s.ctx, suspects) })
	}
	return nil
}

// reportedPowerLoss reports whether an earlier daemon of this boot has reported that the boot before ended without a shutdown, and was
// killed before it has recorded this boot.
func (s *Supervisor) reportedPowerLoss() bool {
	events, _ := s.shared.ring.Since(0)
	boot := s.shared.now().Boot
	return slices.ContainsFunc(events, func(e event.Event) bool { return e.Kind == api.EventUncleanShutdown && e.Boot == boot })
}

// judge returns the suspects and the pods in quarantine by UID. Errors are only logged: the pods are recovered.
func (s *Supervisor) judge() map[string]state.QuarantineEntry {
	accused, err := s.shared.quarantine.Judge(s.shared.crash, s.shared.now().Wall)
	if err != nil {
		s.shared.log.LogAttrs(s.ctx, slog.LevelWarn, "could not use all records of pods in quarantine", slog.Any("error", err))
	}
	return accused
}

// holdSuspect holds a pod that may crash the daemon, or that has.
func (s *Supervisor) holdSuspect(e *state.QuarantineEntry, p state.Pod, found lifecycle.Found, c state.Checkpoint) *heldPod {
	reason, why := lifecycle.ReasonSuspected, "the daemon crashed while handling this pod and others, recovering them one at a time: "+
		e.Cause
	if e.Held {
		reason, why = lifecycle.ReasonQuarantined, fmt.Sprintf("the daemon crashed %d times while it handled this pod: %s", e.Crashes,
			e.Cause)
	}
	h := held(p.Pod, p.Facts, reason, why)
	h.snapshot.Owner = p.Owner
	h.takeUp = func(then initialize) *loop { return s.recoverPod(p, found, c, then) }
	// The removal kills the containers.
	h.takeUpForced = s.takeUpFound(unknownPod(p.Pod.Name), p.Facts.UID, lifecycle.Found{UID: p.Facts.UID})
	// The status is not computed: that may be what crashes the daemon.
	h.completed = lifecycle.Completed(p.Conditions)
	s.hold(h)
	if e.New {
		quarantined := event.New(api.EventPodQuarantined, s.shared.now().Wall, p.Pod.Name,
			event.Fields{"count": fmt.Sprint(e.Crashes), "error": e.Cause})
		quarantined.UID = p.Facts.UID
		s.shared.ring.Add(quarantined)
	}
	return h
}

// forgetCauses forgets the causes of events before the start, except those of pods that are not supervised yet.
func (s *Supervisor) forgetCauses() {
	kept := map[string]emit.Causes{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.blocked {
		uid := h.snapshot.Facts.UID
		kept[uid] = s.shared.restored[uid]
	}
	s.shared.restored = kept
}

// tryOut recovers suspects one after the other, so that a crash shows which of them it is.
func (s *Supervisor) tryOut(ctx context.Context, suspects []*heldPod) {
	for _, h := range suspects {
		if !s.release(h) {
			continue
		}
		if l := h.takeUp(func(*loop, lifecycle.Instant) {}); l != nil {
			s.awaitSettled(ctx, l)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// settleTimeout bounds how long the recovery of a suspect delays that of the next.
const settleTimeout = 2 * time.Minute

// awaitSettled waits until a pod has completed its first turn, and the actions of that have ended.
func (s *Supervisor) awaitSettled(ctx context.Context, l *loop) {
	timeout := time.NewTimer(settleTimeout)
	defer timeout.Stop()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for ready := l.ready; ; {
		select {
		case <-ready:
			ready = nil
		case <-poll.C:
			if ready == nil && !s.shared.quarantine.Handling(l.uid) {
				return
			}
		case <-l.ended:
			return
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// foundFor returns what the engine has of the pod of a state file that cannot be used; the zero value: nothing is known.
func foundFor(u *state.Unusable, list []lifecycle.Found) lifecycle.Found {
	for _, f := range list {
		if f.UID == u.UID || u.UID == "" && f.Pod != nil && f.Pod.Name == u.Name {
			return f
		}
	}
	return lifecycle.Found{}
}

// loadCheckpoints returns the checkpoints of these pods and deletes those of others, except of pods of a later version. Errors are only
// logged: what an unreadable checkpoint held is found out or done again.
func (s *Supervisor) loadCheckpoints(pods []state.Pod, unusable []state.Unusable) map[string]state.Checkpoint {
	if s.shared.checkpoints == nil {
		return nil
	}
	all, err := s.shared.checkpoints.Load()
	present := map[string]bool{}
	for _, p := range pods {
		present[p.Facts.UID] = true
	}
	for _, u := range unusable {
		present[u.UID] = present[u.UID] || u.Kept
	}
	for uid := range all {
		if !present[uid] {
			err = errors.Join(err, s.shared.checkpoints.Delete(uid))
		}
	}
	if err != nil {
		s.shared.log.LogAttrs(s.ctx, slog.LevelWarn, "could not load all checkpoints of probes and stop signals", slog.Any("error", err))
	}
	return all
}

// awaitFirstTurns waits until every pod has completed its first turn. Until then its snapshot is the saved one, which is wrong after a
// reboot.
func (s *Supervisor) awaitFirstTurns(ctx context.Context) error {
	s.mu.Lock()
	loops := slices.Collect(maps.Values(s.pods))
	s.mu.Unlock()
	for _, l := range loops {
		select {
		case <-l.ready:
		case <-l.ended:
		case <-ctx.Done():
			return fmt.Errorf("recover pod %q: %w", l.name, ctx.Err())
		}
	}
	return nil
}

// recoverPod starts the loop of a pod with saved state.
func (s *Supervisor) recoverPod(p state.Pod, found lifecycle.Found, c state.Checkpoint, then initialize) *loop {
	return s.startLoop(p, func(l *loop, now lifecycle.Instant) {
		if p.SavedAt.Boot == now.Boot && !now.Before(p.SavedAt) {
			l.read = p.SavedAt
		}
		p, c := setBack(p, c, now)
		l.facts = p.Facts.Apply(lifecycle.EngineAvailable{At: now})
		if l.facts.Trial.Since.IsZero() && !lifecycle.Terminating(l.pod, l.facts) { // of an earlier version
			l.tryAgain(now)
		}
		if p.SavedAt.Boot != now.Boot {
			shutDown := p.Facts.Stop.Reason == lifecycle.ReasonTerminated // by an earlier daemon, which may have been killed then
			l.fold(lifecycle.Booted{Saved: p.SavedAt, At: now, Unclean: p.SavedAt.Boot == s.shared.uncleanBoot && !shutDown}, now)
		}
		l.fold(lifecycle.ShutdownEnded{Restart: lifecycle.Restarts(p.Pod), At: now}, now)
		if c.At.Boot == now.Boot {
			l.facts = c.ApplyStarts(l.facts)
		}
		l.facts = l.facts.CatchUp(found, now).RetireUnknown(l.pod, found).AbandonStarts(l.pod, found, now)
		l.updateFullPod()
		l.status.Conditions = p.Conditions // without the checkpoint of the probes they would seem to have changed
		if c.At.Boot == now.Boot {
			l.facts = c.Apply(l.facts)
			if p.SavedAt.Boot != c.At.Boot || !c.At.Before(p.SavedAt) {
				l.status.Conditions = c.Conditions
			}
		}
		l.health.restore(p.Conditions)
		l.facts = l.facts.Apply(lifecycle.SupervisionGap{At: now})
		l.dirty = true
		l.correctTimes(now)
		l.reportDamage(s.shared.damaged, now)
		l.events.At(&l.facts, now).Recovered()
		if p.Owner.Unit != "" && p.SavedAt.Boot != now.Boot { // only its unit starts it, in the order of the boot
			l.fold(lifecycle.StopRequested{Delete: true, By: "the supervisor (" + p.Owner.Unit + " starts the pod)", At: now}, now)
		}
		then(l, now)
	})
}

// reportDamage emits which damaged files of the engine ended containers of the pod.
func (l *loop) reportDamage(files []lifecycle.Damage, now lifecycle.Instant) {
	for _, d := range files {
		if d.UID == "" || d.UID == l.facts.UID {
			l.emit(now, api.EventEngineDamaged, "", event.Fields{"file": d.File, "error": d.Error, "aside": d.Aside})
		}
	}
}

// setBack moves the instants of a state file and of a checkpoint of this boot if the clock shows less than they do.
func setBack(p state.Pod, c state.Checkpoint, now lifecycle.Instant) (state.Pod, state.Checkpoint) {
	last := lifecycle.Instant{Boot: now.Boot, Mono: now.Mono}
	for _, saved := range []lifecycle.Instant{p.SavedAt, c.At} {
		if saved.Boot == now.Boot && last.Before(saved) {
			last = saved
		}
	}
	if last.Mono == now.Mono {
		return p, c
	}
	if p.SavedAt.Boot == now.Boot {
		p.SavedAt, p.Facts = p.SavedAt.SetBack(last, now), p.Facts.SetBack(last, now)
	}
	if c.At.Boot == now.Boot {
		c = c.SetBack(last, now)
	}
	return p, c
}

// recoverFound handles a pod that is in the inventory only: its state file is unreadable or lost.
func (s *Supervisor) recoverFound(f lifecycle.Found, lost map[string]bool) {
	pod := f.Pod
	switch {
	case pod == nil && s.holdsNewer():
		return // it may belong to a pod with a later state file
	case pod == nil: // no container has the definition: there is nothing to stop gracefully
		pod = unknownPod("orphan-" + f.UID)
	}
	s.mu.Lock()
	_, taken := s.pods[pod.Name]
	held := s.blocked[pod.Name]
	s.mu.Unlock()
	if held != nil && held.newer() {
		return
	}
	taken = taken || held != nil
	if taken {
		renamed := *pod
		renamed.Name = pod.Name + "-" + f.UID
		pod = &renamed
	}
	stateLost := lost[pod.Name] && !taken
	now := s.shared.now()
	p := state.Pod{Pod: pod, Owner: state.Owner{Orphan: !stateLost}, Facts: lifecycle.Facts{UID: f.UID, Accepted: now}.CatchUp(f, now)}
	s.startLoop(p, func(l *loop, now lifecycle.Instant) {
		l.dirty = true
		if !stateLost {
			l.emit(now, api.EventOrphanFound, "", nil)
		}
		if f.Pod != nil && !taken {
			l.events.At(&l.facts, now).Recovered()
			return
		}
		l.fold(lifecycle.StopRequested{
			Grace: lifecycle.EffectiveGrace(pod, nil), Delete: true, By: "the supervisor (orphaned containers)", At: now,
		},
			now)
	})
}

// restoreEvents restores the events of earlier supervisors from the journal, and the causes that the next event of each pod follows from.
func (s *Supervisor) restoreEvents(ctx context.Context) {
	if s.shared.journal == nil {
		return
	}
	events, err := s.shared.journal.Load()
	if err != nil {
		s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not restore all events", slog.Any("error", err))
	}
	s.shared.ring.Restore(events)
	for i := range events {
		e := &events[i]
		if e.UID == "" {
			continue
		}
		if s.shared.restored[e.UID] == nil {
			s.shared.restored[e.UID] = emit.Causes{}
		}
		s.shared.restored[e.UID].Record(e)
	}
}

// History returns the events of all pods that had a name, ordered by Seq: those in the journal and those in memory. It waits for the disk
// until ctx ends. Beside an error it returns the events that could be read.
func (s *Supervisor) History(ctx context.Context, pod string) ([]event.Event, error) {
	recent, _ := s.shared.ring.Since(0)
	recent = slices.DeleteFunc(recent, func(e event.Event) bool { return e.Pod != pod })
	if s.shared.journal == nil {
		return recent, nil
	}
	type stored struct {
		events []event.Event
		err    error
	}
	done := make(chan stored, 1)
	go func() {
		events, err := s.shared.journal.Read(pod)
		done <- stored{s.shared.ring.Correct(events), err}
	}()
	select {
	case r := <-done:
		return event.Merge(r.events, recent), r.err
	case <-ctx.Done():
		return recent, ctx.Err()
	}
}

// errNotTaken reports that a pod has changed since it was found suitable.
var errNotTaken = errors.New("the pod cannot be taken over")

// TakeOver gives a pod to another owner, whose session replaces the one that the pod has. It reports false if the existing pod of the name
// differs, is being stopped, has no session, or if the client that owns it is running.
func (s *Supervisor) TakeOver(ctx context.Context, pod *spec.Pod, owner state.Owner) (Snapshot, bool) {
	s.mu.Lock()
	l := s.pods[pod.Name]
	s.mu.Unlock()
	if owner.Session == "" || l == nil || !takeable(l.snapshot.Load(), pod) {
		return Snapshot{}, false
	}
	err := s.change(ctx, "take over", pod.Name, l.uid, func(l *loop, _ lifecycle.Instant) error {
		if !takeable(l.snapshot.Load(), pod) {
			return errNotTaken
		}
		l.owner = owner
		l.dirty = true
		return nil
	})
	if err != nil {
		return Snapshot{}, false
	}
	s.mu.Lock()
	s.watchSession(owner.Session)
	s.mu.Unlock()
	return *l.snapshot.Load(), true
}

// takeable reports whether an existing pod is the one of the file, and has lost its client.
func takeable(existing *Snapshot, pod *spec.Pod) bool {
	o := existing.Owner
	return o.Session != "" && !o.Process.Running() && (!o.Keep || !existing.AtRest) && existing.Facts.Stop.Requested.IsZero() &&
		existing.Pod.Hash == pod.Hash && existing.Pod.Dir == pod.Dir
}
