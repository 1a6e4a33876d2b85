package podfiles

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/generation"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// Histories stores the generations of pods. [*generation.Dir] implements it.
type Histories interface {
	Load() (histories map[string]*generation.History, problems []error, err error)
	Save(h *generation.History) error
	Delete(pod string) error
}

// resumed is how long a pod has at least to become ready after the daemon was started, while an update is in progress.
const resumed = 10 * time.Second

// loadHistories loads the generations once. Without them no file is carried out: one of them may have failed. s.turn must be held.
func (s *Set) loadHistories(ctx context.Context) error {
	if s.histories != nil {
		return nil
	}
	now := s.pods.Now()
	loaded := map[string]*generation.History{}
	if s.store != nil {
		type result struct {
			histories map[string]*generation.History
			problems  []error
		}
		r, err := onDisk(ctx, s.saving, func() (result, error) {
			histories, problems, err := s.store.Load()
			return result{histories, problems}, err
		})
		if err != nil {
			return err
		}
		for _, problem := range r.problems {
			s.log.LogAttrs(ctx, slog.LevelWarn, "generations of a pod not available", slog.Any("error", problem))
		}
		loaded = r.histories
	}
	s.histories, s.started = loaded, now
	known := map[string]bool{}
	for name, h := range loaded {
		if g := h.Running(); g != nil && g.Since.Boot != now.Boot {
			g.Since = lifecycle.Instant{Boot: now.Boot, Mono: now.Mono, Wall: g.Since.Wall} // an update starts again with the host
		}
		known[name] = true
		s.keeper.keep(name, h.Images())
		s.aim(name)
	}
	s.keeper.keepOnly(known)
	return nil
}

// aim updates what runs in place of the file of a pod. s.turn must be held.
func (s *Set) aim(pod string) {
	h := s.histories[pod]
	if h == nil || h.Instead == nil {
		delete(s.world.instead, pod)
		return
	}
	s.world.instead[pod] = h.Instead
	delete(s.world.targets, pod)
}

// target returns what a pod is to run: the content of its file, or the generation that runs in its place, and why.
func (w *world) target(c *content) (*content, error) {
	instead := w.instead[c.pod.Name]
	if instead == nil || instead.Digest != c.hex() {
		return c, nil
	}
	t := w.targets[c.pod.Name]
	if t == nil || t.path != c.path {
		t = &content{path: c.path, digest: c.digest, pod: instead.Definition.Pod, instead: instead}
		t.digest[0] ^= 0xff // the attempts for the file are others
		w.targets[c.pod.Name] = t
	}
	return t, &insteadError{instead}
}

// insteadError is why the content of a file is not carried out: another generation runs in its place.
type insteadError struct{ *generation.Instead }

func (e *insteadError) Error() string {
	switch {
	case e.By != "":
		return fmt.Sprintf("generation %d runs instead, requested by %s", e.Number, e.By)
	default:
		return fmt.Sprintf("generation %d was rolled back: %s; generation %d runs", e.Failed, e.Why, e.Number)
	}
}

// hex is the digest as text.
func (c *content) hex() string { return hex.EncodeToString(c.digest[:]) }

// observe records what the pods run, and what becomes of it. It reports whether another definition is to run now, and when to look again.
// s.turn must be held.
func (s *Set) observe(ctx context.Context, r *result) (changed bool) {
	r.lookAgain(s.saveAgain)
	for _, name := range sortedNames(s.world.pods) {
		p, t := s.world.pods[name], r.targets[name]
		if t == nil || p.file != t.path || p.deleting || p.held != "" || s.workers[name] != nil || len(s.world.between(&p, t)) > 0 {
			continue
		}
		h := s.histories[name]
		if h == nil {
			h = &generation.History{Pod: name}
		}
		h = h.Clone()
		var fresh, judged bool
		if t.instead == nil {
			fresh = s.record(h, &p, t)
		}
		if !p.stopped {
			judged = s.judge(ctx, h, &p, t, r)
		}
		if fresh || judged {
			s.histories[name] = h
			s.unsaved[name] = true
			s.aim(name)
			s.keeper.keep(name, h.Images())
			changed = changed || h.Instead != nil && t.instead == nil
		}
	}
	s.saveHistories(ctx)
	return changed
}

// record adds the definition that a pod runs, if it is new.
func (s *Set) record(h *generation.History, p *pod, c *content) bool {
	digest := c.hex()
	last := h.Running()
	switch {
	case last == nil || last.Definition == nil:
	case last.Digest == digest && h.Instead == nil:
		return false
	case h.Instead == nil && last.Outcome != generation.RolledBack && len(s.compare(own(last.Definition.Pod), c.pod)) == 0: // such as a comment
		last.Digest = digest
		return true
	}
	g := generation.Generation{Digest: digest, Since: s.since(p), By: s.requester(p, c), Definition: &generation.Definition{Pod: own(p.definition)}}
	if from := runningDefinition(h); from != nil {
		g.Changes = s.compare(own(from), c.pod)
	}
	h.Begin(g)
	delete(s.changedAt, p.name)
	return true
}

// runningDefinition is the definition that a pod ran before; nil: it is not known.
func runningDefinition(h *generation.History) *spec.Pod {
	if h.Instead != nil {
		return h.Instead.Definition.Pod
	}
	if g := h.Newest(); g != nil && g.Definition != nil {
		return g.Definition.Pod
	}
	return nil
}

// since returns when a pod was changed to the definition that it runs. If that was before the daemon started, it is not known: failures of
// earlier definitions must not count.
func (s *Set) since(p *pod) lifecycle.Instant {
	if at, known := s.changedAt[p.name]; known {
		return at
	}
	return s.pods.Now()
}

// requester returns who requested the definition of a pod.
func (s *Set) requester(p *pod, c *content) string {
	if by := s.appliedBy[c.path]; by.digest == c.digest {
		return by.client
	}
	return p.snapshot.Owner.By
}

// judge records what became of the definition that a pod runs. It reports whether that is new.
func (s *Set) judge(ctx context.Context, h *generation.History, p *pod, t *content, r *result) bool {
	if t.instead != nil {
		return s.judgeReturn(h, p)
	}
	g := h.Newest()
	if g.Outcome == generation.Ready {
		return false
	}
	now, since := s.pods.Now(), g.Since
	if again := p.snapshot.Facts.AgainAt; !again.IsZero() && since.Before(again) {
		since = again
	}
	allowed, rollback := t.pod.UpdateRule()
	v := judge(p.snapshot, since)
	if due := s.due(since, allowed); !v.ready && v.failed == "" && g.Outcome == generation.Progressing {
		if left := due.Sub(now); left > 0 {
			r.lookAgain(s.world.now.Add(left))
			return false
		}
		v.failed = notInTime(p.snapshot, allowed)
	}
	switch {
	case v.ready:
		s.isReady(ctx, h, g, p)
	case v.failed == "" || g.Outcome != generation.Progressing:
		return false
	default:
		s.hasFailed(ctx, h, g, p, v.failed, rollback)
	}
	return true
}

// due returns when a definition counts as failed that a pod has run since an instant.
func (s *Set) due(since lifecycle.Instant, allowed time.Duration) lifecycle.Instant {
	due := since.Add(allowed)
	if least := s.started.Add(min(allowed, resumed)); due.Before(least) {
		return least
	}
	return due
}

// isReady records that a generation is ready.
func (s *Set) isReady(ctx context.Context, h *generation.History, g *generation.Generation, p *pod) {
	d := &generation.Definition{Pod: own(p.definition), Images: map[string]lifecycle.Image{}, Config: s.config(ctx, p.definition)}
	for name, c := range p.snapshot.Facts.Containers {
		if d.Pod.Container(name) != nil && c.Image.ID != "" {
			d.Images[name] = c.Image
		}
	}
	g.Outcome, g.Message, g.Definition = generation.Ready, "", d
	h.Trim()
	if g.Number > 1 {
		s.add(event.UpdateCompleted, p.name, p.uid, event.Fields{"generation": strconv.Itoa(g.Number)})
	}
}

// hasFailed records that a generation has failed, and returns to the one before that was ready if there is one.
func (s *Set) hasFailed(ctx context.Context, h *generation.History, g *generation.Generation, p *pod, why string, rollback bool) {
	number := strconv.Itoa(g.Number)
	target := h.Target(g.Number)
	if !rollback || target == nil {
		g.Outcome, g.Message = generation.Failed, why
		if g.Number == 1 {
			return // the pod has not been updated
		}
		s.add(event.UpdateFailed, p.name, p.uid, event.Fields{"generation": number, "error": why})
		return
	}
	h.Return(generation.Instead{
		Digest: g.Digest, Number: target.Number, Failed: g.Number, Why: why, At: s.pods.Now(), Definition: s.pinned(ctx, target.Definition),
	})
	s.add(event.RollbackStarted, p.name, p.uid, event.Fields{"generation": number, "target": strconv.Itoa(h.Instead.Number), "error": why})
}

// judgeReturn records that a pod is ready again after it has returned to an earlier generation.
func (s *Set) judgeReturn(h *generation.History, p *pod) bool {
	if h.Instead.Completed || !judge(p.snapshot, h.Instead.At).ready {
		return false
	}
	i := *h.Instead
	i.Completed = true
	h.Instead = &i
	s.add(event.RollbackCompleted, p.name, p.uid, event.Fields{"generation": strconv.Itoa(i.Number)})
	return true
}

// saveHistories saves what has changed. After a failure it tries again later: the pods are changed nevertheless.
func (s *Set) saveHistories(ctx context.Context) {
	if s.store == nil || len(s.unsaved) == 0 || s.world.now.Before(s.saveAgain) {
		return
	}
	s.saveAgain = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(s.unsaved)) {
		h := s.histories[name]
		_, err := onDisk(context.WithoutCancel(ctx), s.saving, func() (struct{}, error) {
			if h == nil {
				return struct{}{}, s.store.Delete(name)
			}
			return struct{}{}, s.store.Save(h)
		})
		if err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "generations of a pod not saved", slog.String("pod", name), slog.Any("error", err))
			s.saveAgain = time.Now().Add(s.times.retry)
			return
		}
		delete(s.unsaved, name)
	}
}

// forgetHistories removes the generations of pods that do not exist any more. s.turn must be held.
func (s *Set) forgetHistories(names map[string]bool) {
	if s.world.directory.lost != nil || s.world.unsettled || s.listError != "" {
		return
	}
	for name := range s.histories {
		if !names[name] {
			delete(s.histories, name)
			s.unsaved[name] = true
			s.aim(name)
			s.keeper.keep(name, nil)
		}
	}
}

// config returns the config maps and secrets of the host that a pod uses. Those that cannot be read are not kept.
func (s *Set) config(ctx context.Context, p *spec.Pod) generation.Config {
	if s.values == nil {
		return generation.Config{}
	}
	c, err := onDisk(context.WithoutCancel(ctx), s.reading, func() (generation.Config, error) { return readConfig(s.values, p) })
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelInfo, "config of a generation not kept", slog.String("pod", p.Name), slog.Any("error", err))
	}
	return c
}

// pinned returns a definition with the config that it had, where that differs from the present one.
func (s *Set) pinned(ctx context.Context, d *generation.Definition) *generation.Definition {
	return d.Pin(s.config(ctx, d.Pod))
}

// owner returns the owner of a pod that a step creates or changes.
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
