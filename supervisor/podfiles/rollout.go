package podfiles

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/generation"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles/rollout"
	"github.com/podstead/podstead/supervisor/state"
)

// Rollout is the generations of a pod of the pods directory.
type Rollout struct {
	Pod     string
	File    string
	History *generation.History // a copy
	// Newer is set if the file has changed since the newest generation, or newer images are requested.
	Newer bool
	// Changing is set if the pod does not have the definition yet that is to run.
	Changing bool
}

// NoRolloutError reports that a pod has no generations.
type NoRolloutError struct{ Pod, Why string }

func (e *NoRolloutError) Error() string {
	return fmt.Sprintf("pod %q has no generations: %s", e.Pod, e.Why)
}

// applied is the client that has applied a file.
type applied struct {
	digest [32]byte
	client string
}

// hex is the digest as text.
func (c *content) hex() string { return hex.EncodeToString(c.digest[:]) }

// target returns what a pod is to run: the content of its file, or the generation that runs in its place, and why.
func (w *world) target(c *content) (*content, error) {
	instead := w.instead(c.pod.Name)
	if instead == nil || instead.Digest != c.hex() {
		return c, nil
	}
	t := w.targets[c.pod.Name]
	switch {
	case t == nil || t.path != c.path || t.instead.Definition != instead.Definition:
		t = &content{path: c.path, digest: c.digest, pod: instead.Definition.Pod, instead: instead}
		t.digest[0] ^= 0xff // the attempts for the file are others
	case t.instead != instead:
		next := *t // a step may be using t
		next.instead = instead
		t = &next
	}
	w.targets[c.pod.Name] = t
	return t, &insteadError{instead}
}

// insteadError is why the content of a file is not carried out: another generation runs in its place.
type insteadError struct{ *generation.Instead }

func (e *insteadError) Error() string { return e.String() }

// observe records what the pods run, and what becomes of it. It reports whether another definition is to run now. s.turn must be held.
func (s *Set) observe(ctx context.Context, r *result) (changed bool) {
	for _, name := range sortedNames(s.world.pods) {
		p, t := s.world.pods[name], r.targets[name]
		if t == nil || p.file != t.path || p.deleting || p.held != "" {
			continue
		}
		if s.workers[name] != nil || len(s.world.changes(&p, t)) > 0 {
			s.rollouts.ObserveOutdated(p.rollout())
			continue
		}
		if t.instead != nil {
			s.rollouts.ObserveInstead(p.rollout())
			continue
		}
		if s.rollouts.Observe(ctx, p.rollout(), t.hex(), s.requester(t, p.snapshot.Owner.By)) {
			changed = true
		}
	}
	r.lookAgain(s.rollouts.Save(ctx))
	return changed
}

// rollout is the pod for its generations.
func (p *pod) rollout() *rollout.Pod {
	return &rollout.Pod{Name: p.name, UID: p.uid, Snapshot: p.snapshot, Definition: own(p.definition), Stopped: p.stopped}
}

// keepHeld has the pods kept that start nothing because their definition failed, unless another one replaces it: their file is invalid or
// was removed, the other definition cannot run, or their generations were lost. What cannot be read is waited for. s.turn must be held.
func (s *Set) keepHeld(ctx context.Context, r *result) {
	if ctx.Err() != nil || time.Now().Before(s.suspended) || s.world.unsettled {
		return
	}
	if until := s.unread(); time.Now().Before(until) {
		r.lookAgain(until)
		return
	}
	for name, p := range s.world.pods {
		t := r.targets[name]
		switch {
		case !p.snapshot.Facts.Trial.Holds() || s.keeping[p.uid]:
			continue
		case t != nil && s.world.replaces(&p, t):
			continue
		case t != nil && s.workers[name] != nil && len(s.world.between(&p, t)) == 0: // it is observed when its change is done
			continue
		}
		s.keeping[p.uid] = true
		s.running.Go(func() {
			if err := s.pods.Keep(ctx, name, p.uid); err != nil && ctx.Err() == nil {
				s.log.LogAttrs(ctx, slog.LevelInfo, "pod not kept", slog.String("pod", name), slog.Any("error", err))
			}
			s.turn.Lock()
			defer s.turn.Unlock()
			delete(s.keeping, p.uid)
		})
	}
}

// unread returns until when to wait for generations, or for a directory, that cannot be read; zero: they were read. s.turn must be held.
func (s *Set) unread() time.Time {
	since := s.world.directory.since
	if !s.unloaded.IsZero() {
		since = s.unloaded
	}
	if since.IsZero() {
		return time.Time{}
	}
	return since.Add(s.times.settle)
}

// replaces reports whether a content is about to run in place of what a pod has, and no attempt of that has failed.
func (w *world) replaces(p *pod, t *content) bool {
	if t.instead == nil && len(w.changes(p, t)) == 0 {
		return false
	}
	s := step{uid: p.uid, target: t, newer: w.newerFor(p, t)}
	before := w.attempts[p.name]
	return before.err == nil || before.key != s.key()
}

// beginRollout records that a step is about to carry out a file, and keeps the images that the pod may return to. It reports whether it
// returns if the definition fails. The error is errOutdated if another definition is to run by now.
func (s *Set) beginRollout(ctx context.Context, step *step, images map[string]lifecycle.Image, by string) (rollsBack bool, err error) {
	rollsBack, keep, err := s.recordStep(ctx, step, images, by)
	if err != nil {
		return false, err
	}
	return rollsBack, keep(context.WithoutCancel(ctx))
}

// recordStep records that a step is about to carry out a file, with these images. The function that it returns keeps images.
func (s *Set) recordStep(
	ctx context.Context, step *step, images map[string]lifecycle.Image, by string,
) (rollsBack bool, keep func(context.Context) error, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	c := s.world.defining(step.pod)
	if c == nil {
		return false, nil, errOutdated
	}
	if t, _ := s.world.target(c); t.path != step.target.path || t.digest != step.target.digest {
		return false, nil, errOutdated
	}
	if step.target.instead != nil {
		return false, s.rollouts.Keep(step.pod), nil
	}
	b := rollout.Beginning{
		UID: step.uid, Definition: step.target.pod, Digest: step.target.hex(), By: s.requester(step.target, by), Images: images,
	}
	if p, exists := s.world.pods[step.pod]; exists && p.uid == step.uid && len(step.newer) > 0 {
		b.ImageChanges = supervisor.ImageChanges(p.snapshot, step.target.pod, images)
	}
	s.rollouts.Begin(ctx, b)
	return s.rollouts.RollsBack(step.pod), s.rollouts.Keep(step.pod), nil
}

// requester returns who requested the definition of a file: the client that has applied it, or else by. s.turn must be held.
func (s *Set) requester(c *content, by string) string {
	if applied := s.appliedBy[c.path]; applied.digest == c.digest {
		return applied.client
	}
	return by
}

// owner returns the owner of a pod that a step adds or changes.
func (s *step) owner(by string) state.Owner {
	switch {
	case s.target.instead == nil:
	case s.target.instead.By != "":
		by = s.target.instead.By
	default:
		by = fmt.Sprintf("the rollback of generation %d", s.target.instead.Failed)
	}
	return state.Owner{File: s.file, By: by}
}

// Rollout returns the generations of a pod. The error is a [*NoRolloutError] if the pod has no file in the directory.
func (s *Set) Rollout(ctx context.Context, pod string) (Rollout, error) {
	if err := s.begin(ctx); err != nil {
		return Rollout{}, fmt.Errorf("rollout of pod %q: %w", pod, err)
	}
	defer s.turn.Unlock()
	return s.rollout(ctx, pod)
}

// rollout is [Set.Rollout]. s.turn must be held.
func (s *Set) rollout(ctx context.Context, pod string) (Rollout, error) {
	if err := s.rollouts.Load(ctx); err != nil {
		return Rollout{}, fmt.Errorf("rollout of pod %q: %w", pod, err)
	}
	p, exists := s.world.pods[pod]
	h, c := s.rollouts.History(pod), s.world.defining(pod)
	switch {
	case exists && p.file == "":
		return Rollout{}, &NoRolloutError{pod, "it has no file in the pods directory"}
	case !exists && h == nil && c == nil:
		return Rollout{}, &NoRolloutError{pod, "it does not exist"}
	case h == nil:
		h = &generation.History{Pod: pod}
	}
	r := Rollout{Pod: pod, File: p.file, History: h, Newer: s.world.unsettled}
	if c != nil {
		t, _ := s.world.target(c)
		r.Newer = r.Newer || h.Carried() != c.hex() || exists && t == c && len(s.world.newerFor(&p, c)) > 0
		r.Changing = !exists || s.workers[pod] != nil || len(s.world.changes(&p, t)) > 0
		if r.File == "" { // the pod is being replaced
			r.File = c.path
		}
	}
	return r, nil
}

// defining returns the content that defines a pod; nil: there is none, or several.
func (w *world) defining(pod string) *content {
	var found *content
	for _, c := range w.contents {
		if c.pod != nil && c.pod.Name == pod {
			if found != nil {
				return nil
			}
			found = c
		}
	}
	return found
}

// Undo makes a pod run an earlier generation in place of its file, until the file is changed. The file is kept. Generation 0 is the last
// one before the running one that was ready. The generation of a file that was rolled back is tried again. The error is a [*ConflictError]
// if the generation cannot run, and a [*NoRolloutError] if the pod has no file in the directory; by is the client, for people.
func (s *Set) Undo(ctx context.Context, pod string, to int, by string) (Rollout, error) {
	if err := s.begin(ctx); err != nil {
		return Rollout{}, fmt.Errorf("undo rollout of pod %q: %w", pod, err)
	}
	defer s.turn.Unlock()
	if _, err := s.rollout(ctx, pod); err != nil {
		return Rollout{}, err
	}
	c := s.world.defining(pod)
	p, exists := s.world.pods[pod]
	switch {
	case !exists:
		return Rollout{}, conflictf("pod %q is being replaced", pod)
	case c == nil:
		return Rollout{}, conflictf("no valid file of the pods directory defines pod %q alone", pod)
	case p.deleting:
		return Rollout{}, conflictf("pod %q is being deleted", pod)
	}
	t, _ := s.world.target(c)
	waits := t.instead == nil && len(s.world.changes(&p, c)) > 0
	if err := s.rollouts.Undo(ctx, p.rollout(), c.hex(), waits, to, by); err != nil {
		if refused, ok := errors.AsType[*rollout.NotPossibleError](err); ok {
			return Rollout{}, conflictf("%s", refused.Message)
		}
		return Rollout{}, err
	}
	delete(s.world.attempts, pod)
	delete(s.world.newer, pod)
	if g := s.rollouts.History(pod).Running(); s.rollouts.Instead(pod) == nil && g.Definition != nil && len(g.Definition.Images) > 0 {
		s.world.newer[pod] = newer{c.digest, g.Definition.Images} // the same text may have run with other images
	}
	s.wake()
	r, err := s.rollout(ctx, pod)
	r.Newer = r.Newer && s.rollouts.Instead(pod) != nil // otherwise the file is carried out
	return r, err
}
