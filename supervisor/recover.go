package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/podstead/podstead/spec"
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
//  6. The engine may have containers of a pod without a state file. They are orphaned: they are stopped with their grace period and
//     deleted.
func (s *Supervisor) Recover(ctx context.Context) error {
	s.restoreEvents(ctx)
	defer func() { s.shared.restored = nil }()
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
		kind := event.StateLost
		if u.Kept {
			kind = event.StateUnsupported
			f := foundFor(&u, list)
			s.blocked[u.Name] = newNewerPod(&u, f, s.shared.now())
			delete(found, f.UID)
		}
		lost[u.Name] = true
		s.shared.ring.Add(event.New(kind, s.shared.now().Wall, u.Name, event.Fields{"file": u.File, "error": u.Err.Error()}))
	}
	checkpoints := s.loadCheckpoints(pods)
	for _, p := range pods {
		s.recoverPod(p, found[p.Facts.UID], checkpoints[p.Facts.UID])
		delete(found, p.Facts.UID)
	}
	for _, f := range found {
		s.recoverFound(f, lost)
	}
	return s.awaitFirstTurns(ctx)
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

// loadCheckpoints returns the checkpoints of these pods and deletes those of others. Errors are only logged: what an unreadable
// checkpoint held is found out or done again.
func (s *Supervisor) loadCheckpoints(pods []state.Pod) map[string]state.Checkpoint {
	if s.shared.checkpoints == nil {
		return nil
	}
	all, err := s.shared.checkpoints.Load()
	present := map[string]bool{}
	for _, p := range pods {
		present[p.Facts.UID] = true
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
			return fmt.Errorf("recover pod %q: %w", l.pod.Name, ctx.Err())
		}
	}
	return nil
}

// recoverPod starts the loop of a pod with saved state.
func (s *Supervisor) recoverPod(p state.Pod, found lifecycle.Found, c state.Checkpoint) {
	s.startLoop(p, func(l *loop, now lifecycle.Instant) {
		p, c := setBack(p, c, now)
		l.facts = p.Facts.Apply(lifecycle.EngineAvailable{At: now})
		if p.SavedAt.Boot != now.Boot {
			l.fold(lifecycle.Booted{Saved: p.SavedAt, At: now}, now)
		}
		l.facts = l.facts.CatchUp(found, now).AbandonStarts(p.Pod, found, now)
		l.updateFullPod()
		l.status.Conditions = p.Conditions // without the checkpoint of the probes they would seem to have changed
		if c.At.Boot == now.Boot {
			l.facts = c.Apply(l.facts)
			if p.SavedAt.Boot != c.At.Boot || !c.At.Before(p.SavedAt) {
				l.status.Conditions = c.Conditions
			}
		}
		l.dirty = true
		l.events.At(l.facts, now).Recovered()
	})
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

// recoverFound handles a pod that is in the inventory only. Its state was lost, or its containers are orphaned.
func (s *Supervisor) recoverFound(f lifecycle.Found, lost map[string]bool) {
	pod := f.Pod
	switch {
	case pod == nil && len(s.blocked) > 0:
		return // it may belong to a pod with a later state file
	case pod == nil: // no container has the definition: there is nothing to stop gracefully
		pod = &spec.Pod{Name: "orphan-" + f.UID, RestartPolicy: spec.RestartNever}
	}
	if _, blocked := s.blocked[pod.Name]; blocked {
		return
	}
	stateLost := lost[pod.Name]
	s.mu.Lock()
	_, taken := s.pods[pod.Name]
	s.mu.Unlock()
	if taken {
		renamed := *pod
		renamed.Name = pod.Name + "-" + f.UID
		pod = &renamed
		stateLost = false
	}
	now := s.shared.now()
	p := state.Pod{Pod: pod, Facts: lifecycle.Facts{UID: f.UID, Accepted: now}.CatchUp(f, now)}
	s.startLoop(p, func(l *loop, now lifecycle.Instant) {
		l.dirty = true
		if stateLost {
			l.events.At(l.facts, now).Recovered()
			return
		}
		l.emit(now, event.OrphanFound, "", nil)
		l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(pod, nil), Delete: true, By: "the supervisor (orphaned containers)", At: now}, now)
	})
}
