package rollout

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/generation"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Observe records that a pod runs the definition of its file, whose text has a digest, and what has become of it. By is who requested the
// definition. It reports whether an earlier generation is to run now.
func (t *Tracker) Observe(ctx context.Context, p *Pod, digest, by string) (returns bool) {
	h := t.histories[p.Name]
	if h == nil {
		h = &generation.History{Pod: p.Name}
	}
	h = h.Clone()
	recorded := t.record(ctx, h, p, digest, by)
	judged := !p.Stopped && t.judge(ctx, h, p)
	if recorded || judged {
		t.put(h)
	}
	return h.Instead != nil
}

// ObserveOutdated records that a pod is ready whose file defines something else by now, such as while an update waits for an image. If the
// update fails, the pod can return to what it runs.
func (t *Tracker) ObserveOutdated(p *Pod) {
	h := t.histories[p.Name]
	if h == nil || h.Instead != nil || p.Stopped {
		return
	}
	h = h.Clone()
	g := h.Newest()
	if g == nil || g.Outcome == generation.Ready || !g.ReadyAt.IsZero() || g.Definition == nil || !t.isOf(p, g.Definition) {
		return
	}
	complete := p.Snapshot.Outcome.State == lifecycle.OutcomeComplete
	if !complete && p.Snapshot.Outcome.State != lifecycle.OutcomeReady {
		return
	}
	t.isReady(g, p)
	if complete {
		t.completed(h, g, p)
	}
	t.put(h)
}

// isOf reports whether a pod has a definition, and uses its images as far as they are known.
func (t *Tracker) isOf(p *Pod, d *generation.Definition) bool {
	return len(t.o.Compare(d.Pod, p.Definition)) == 0 && len(supervisor.ImageChanges(p.Snapshot, d.Pod, d.Images)) == 0
}

// ObserveInstead records what has become of a pod that runs [Tracker.Instead].
func (t *Tracker) ObserveInstead(p *Pod) {
	h := t.histories[p.Name]
	ready := p.Snapshot.Outcome.State == lifecycle.OutcomeReady || p.Snapshot.Outcome.State == lifecycle.OutcomeComplete
	if p.Stopped || h.Instead.Completed || !ready {
		return
	}
	h = h.Clone()
	i := *h.Instead
	i.Completed = true
	h.Instead = &i
	t.put(h)
	t.emit(event.RollbackCompleted, p.Name, p.UID, event.Fields{"generation": strconv.Itoa(i.Number)})
}

// Beginning is what a pod is about to run.
type Beginning struct {
	Definition *spec.Pod
	Digest     string                     // of the text of the file
	UID        string                     // of the pod that runs; empty: there is none
	By         string                     // who requested it
	Images     map[string]lifecycle.Image // that its containers are about to use, as far as that is known
	// ImageChanges are those of the changes that only the images show.
	ImageChanges []change.Change
}

// Begin records that a pod is about to be added with, or changed to, the definition of a file. What fails from now on is a failure of that
// definition, also if the daemon is killed before it can observe the pod. The same text with other images is a generation of its own.
func (t *Tracker) Begin(ctx context.Context, b Beginning) {
	h := t.histories[b.Definition.Name]
	if h == nil {
		h = &generation.History{Pod: b.Definition.Name}
	}
	h = h.Clone()
	last := h.Newest()
	interrupted := last != nil && last.Outcome == generation.Progressing && last.Digest == b.Digest && h.Instead == nil && !usesOthers(last, &b)
	known := last != nil && last.Outcome == generation.Ready && last.Digest == b.Digest && h.Instead == nil && !usesOthers(last, &b)
	switch {
	case interrupted:
		last.Since = t.o.Now()
		last.Definition = &generation.Definition{Pod: b.Definition, Images: b.Images, Config: t.config(ctx, b.Definition)}
	case !known:
		t.begin(ctx, h, &b)
	}
	t.put(h)
	t.Save(ctx)
}

// RollsBack reports whether an earlier generation replaces the newest one of a pod if it fails.
func (t *Tracker) RollsBack(pod string) bool {
	h := t.histories[pod]
	if h == nil || h.Instead != nil {
		return false
	}
	g := h.Newest()
	if g == nil || g.Definition == nil || g.Outcome != generation.Progressing {
		return false
	}
	_, _, rollback := g.Definition.Pod.UpdateRule()
	return rollback && h.Target(g.Number) != nil
}

// usesOthers reports whether newer images are requested for a generation than it has.
func usesOthers(g *generation.Generation, b *Beginning) bool {
	for i := range b.ImageChanges {
		name := b.ImageChanges[i].Container
		if g.Definition == nil || g.Definition.Images[name].ID != b.Images[name].ID {
			return true
		}
	}
	return false
}

// FailedWith reports whether the generation of a file that was rolled back had these images.
func (t *Tracker) FailedWith(pod string, images map[string]lifecycle.Image) bool {
	h := t.histories[pod]
	if h == nil || h.Instead == nil {
		return false
	}
	failed := h.Find(h.Instead.Failed)
	for name, image := range images {
		if failed == nil || failed.Definition == nil || failed.Definition.Images[name].ID != image.ID {
			return false
		}
	}
	return true
}

// Keep returns a function that keeps the images of the generations of a pod, before the runs end that use them. It can be called
// concurrently with other methods.
func (t *Tracker) Keep(pod string) func(context.Context) error {
	h := t.histories[pod]
	if h == nil || len(h.Images()) == 0 {
		return func(context.Context) error { return nil }
	}
	images := h.Images()
	return func(ctx context.Context) error {
		if err := t.keeper.keepNow(ctx, pod, images); err != nil {
			return fmt.Errorf("keep the images of earlier generations: %w", err)
		}
		return nil
	}
}

// Refused records that a definition cannot be added because of the host or other pods, after the pod that ran before was deleted. If it is
// an update that is to be rolled back, the last generation that was ready runs instead.
func (t *Tracker) Refused(ctx context.Context, definition *spec.Pod, digest string, why error) {
	h := t.histories[definition.Name]
	if h == nil || h.Instead != nil {
		return
	}
	h = h.Clone()
	g := h.Newest()
	if _, _, rollback := definition.UpdateRule(); g.Digest != digest || g.Outcome != generation.Progressing || !rollback || h.Target(g.Number) == nil {
		return
	}
	t.hasFailed(ctx, h, g, &Pod{Name: definition.Name}, why.Error(), true)
	t.put(h)
	t.Save(ctx)
}

// begin adds a generation with the config that its containers are about to read.
func (t *Tracker) begin(ctx context.Context, h *generation.History, b *Beginning) {
	t.resumes(h, b.UID)
	d := &generation.Definition{Pod: b.Definition, Images: b.Images, Config: t.config(ctx, b.Definition)}
	g := generation.Generation{Digest: b.Digest, Since: t.o.Now(), By: b.By, Definition: d}
	if from := definitionOf(h); from != nil {
		g.Changes = slices.Concat(t.o.Compare(from, b.Definition), b.ImageChanges)
		change.Sort(g.Changes)
	}
	h.Begin(g)
}

// record adds the definition that a pod runs, if it is new: it was changed in a way that needs no change of the pod, or by a daemon that
// did not record it.
func (t *Tracker) record(ctx context.Context, h *generation.History, p *Pod, digest, by string) bool {
	last := h.Newest()
	if h.Instead == nil && last != nil && last.Definition != nil {
		switch {
		case last.Outcome == generation.RolledBack: // it is tried again
		case last.Digest == digest:
			return false
		case len(t.o.Compare(last.Definition.Pod, p.Definition)) == 0: // such as a comment
			last.Digest = digest
			return true
		}
	}
	t.begin(ctx, h, &Beginning{UID: p.UID, Definition: p.Definition, Digest: digest, By: by})
	return true
}

// definitionOf is the definition that a pod runs, or ran before; nil: it is not known.
func definitionOf(h *generation.History) *spec.Pod {
	if h.Instead != nil {
		return h.Instead.Definition.Pod
	}
	g := h.Newest()
	if g != nil && g.Outcome == generation.RolledBack { // it is tried again
		g = h.Target(g.Number)
	}
	if g != nil && g.Definition != nil {
		return g.Definition.Pod
	}
	return nil
}

// judge records what has become of the newest generation. It reports whether that is new.
func (t *Tracker) judge(ctx context.Context, h *generation.History, p *Pod) (changed bool) {
	g, outcome := h.Newest(), p.Snapshot.Outcome
	if g.Outcome == generation.Ready {
		return false
	}
	switch outcome.State {
	case lifecycle.OutcomeComplete:
		t.isReady(g, p)
		t.completed(h, g, p)
		return true
	case lifecycle.OutcomeReady:
		if !g.ReadyAt.IsZero() {
			return false
		}
		t.isReady(g, p)
		return true
	case lifecycle.OutcomeFailed:
		if g.Outcome != generation.Progressing {
			return false
		}
		_, _, rollback := p.Definition.UpdateRule()
		t.hasFailed(ctx, h, g, p, outcome.Message, rollback)
		return true
	case lifecycle.OutcomeProgressing:
	}
	changed, g.ReadyAt = !g.ReadyAt.IsZero(), lifecycle.Instant{}
	return changed
}

// isReady records that a generation is ready, and what is needed to return to it.
func (t *Tracker) isReady(g *generation.Generation, p *Pod) {
	d := &generation.Definition{Pod: p.Definition, Images: map[string]lifecycle.Image{}, Config: g.Definition.Config}
	for name, c := range p.Snapshot.Facts.Containers {
		if d.Pod.Container(name) != nil && c.Image.ID != "" {
			d.Images[name] = c.Image
		}
	}
	g.Definition, g.ReadyAt = d, t.o.Now()
}

// completed records that a generation has stayed ready.
func (t *Tracker) completed(h *generation.History, g *generation.Generation, p *Pod) {
	g.Outcome, g.Message = generation.Ready, ""
	if g.Number > 1 {
		t.emit(event.UpdateCompleted, p.Name, p.UID, event.Fields{"generation": strconv.Itoa(g.Number)})
	}
	h.Trim()
}

// hasFailed records that a generation has failed, and returns to the one before that was ready if there is one.
func (t *Tracker) hasFailed(ctx context.Context, h *generation.History, g *generation.Generation, p *Pod, why string, rollback bool) {
	number := strconv.Itoa(g.Number)
	target := h.Target(g.Number)
	g.ReadyAt = lifecycle.Instant{}
	if !rollback || target == nil {
		g.Outcome, g.Message = generation.Failed, why
		if g.Number > 1 { // the first one is no update
			t.emit(event.UpdateFailed, p.Name, p.UID, event.Fields{"generation": number, "error": why})
		}
		return
	}
	i := generation.Instead{
		Digest: g.Digest, Number: target.Number, Failed: g.Number, Why: why, At: t.o.Now(), Definition: t.pinned(ctx, target.Definition),
	}
	h.Return(i)
	t.emit(event.RollbackStarted, p.Name, p.UID, event.Fields{"generation": number, "target": strconv.Itoa(i.Number), "error": why})
}
