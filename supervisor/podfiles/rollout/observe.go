package rollout

import (
	"context"
	"strconv"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/generation"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// resumed is how long a pod has at least to become ready after the daemon was started, while an update is in progress.
const resumed = 10 * time.Second

// Observe records that a pod runs the definition of its file, whose text has a digest, and what has become of it. By is who requested the
// definition. It reports whether an earlier generation is to run now, and how long it takes until the definition counts as failed; 0: it is
// known what has become of it, or it changes with the pod.
func (t *Tracker) Observe(ctx context.Context, p *Pod, digest, by string) (returns bool, due time.Duration) {
	h := t.histories[p.Name]
	if h == nil {
		h = &generation.History{Pod: p.Name}
	}
	h = h.Clone()
	recorded := t.record(h, p, digest, by)
	judged := false
	if !p.Stopped {
		judged, due = t.judge(ctx, h, p)
	}
	if recorded || judged {
		t.put(h)
	}
	return h.Instead != nil, due
}

// ObserveOutdated records that a pod is ready whose file defines something else by now, such as while an update waits for an image. If the
// update fails, the pod can return to what it runs.
func (t *Tracker) ObserveOutdated(ctx context.Context, p *Pod) {
	h := t.histories[p.Name]
	if h == nil || h.Instead != nil || p.Stopped {
		return
	}
	h = h.Clone()
	g := h.Newest()
	if g == nil || g.Outcome == generation.Ready || g.Definition == nil || len(t.o.Compare(g.Definition.Pod, p.Definition)) > 0 || !judge(p.Snapshot, g.Since).ready {
		return
	}
	t.isReady(ctx, h, g, p)
	t.put(h)
}

// ObserveInstead records what has become of a pod that runs [Tracker.Instead].
func (t *Tracker) ObserveInstead(p *Pod) {
	h := t.histories[p.Name]
	if p.Stopped || h.Instead.Completed || !judge(p.Snapshot, h.Instead.At).ready {
		return
	}
	h = h.Clone()
	i := *h.Instead
	i.Completed = true
	h.Instead = &i
	t.put(h)
	t.o.Add(event.RollbackCompleted, p.Name, p.UID, event.Fields{"generation": strconv.Itoa(i.Number)})
}

// record adds the definition that a pod runs, if it is new.
func (t *Tracker) record(h *generation.History, p *Pod, digest, by string) bool {
	last := h.Newest()
	if h.Instead == nil && last != nil && last.Definition != nil {
		if last.Digest == digest {
			return false
		}
		if last.Outcome != generation.RolledBack && len(t.o.Compare(last.Definition.Pod, p.Definition)) == 0 { // such as a comment
			last.Digest = digest
			return true
		}
	}
	g := generation.Generation{Digest: digest, Since: t.since(p), By: by, Definition: &generation.Definition{Pod: p.Definition}}
	if from := definitionOf(h); from != nil {
		g.Changes = t.o.Compare(from, p.Definition)
	}
	h.Begin(g)
	delete(t.changedAt, p.Name)
	return true
}

// definitionOf is the definition that a pod runs, or ran before; nil: it is not known.
func definitionOf(h *generation.History) *spec.Pod {
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
func (t *Tracker) since(p *Pod) lifecycle.Instant {
	if at, known := t.changedAt[p.Name]; known {
		return at
	}
	return t.o.Now()
}

// judge records what has become of the newest generation. It reports whether that is new, or how long it takes until the generation counts
// as failed.
func (t *Tracker) judge(ctx context.Context, h *generation.History, p *Pod) (changed bool, left time.Duration) {
	g := h.Newest()
	if g.Outcome == generation.Ready {
		return false, 0
	}
	since := g.Since
	if again := p.Snapshot.Facts.AgainAt; !again.IsZero() && since.Before(again) {
		since = again
	}
	v := judge(p.Snapshot, since)
	if v.ready {
		t.isReady(ctx, h, g, p)
		return true, 0
	}
	if g.Outcome != generation.Progressing {
		return false, 0
	}
	allowed, rollback := p.Definition.UpdateRule()
	if v.failed == "" {
		if left := t.due(since, allowed).Sub(t.o.Now()); left > 0 {
			return false, left
		}
		v.failed = notInTime(p.Snapshot, allowed)
	}
	t.hasFailed(ctx, h, g, p, v.failed, rollback)
	return true, 0
}

// due returns when a definition counts as failed that a pod has run since an instant.
func (t *Tracker) due(since lifecycle.Instant, allowed time.Duration) lifecycle.Instant {
	due := since.Add(allowed)
	if least := t.started.Add(min(allowed, resumed)); due.Before(least) {
		return least
	}
	return due
}

// isReady records that a generation is ready.
func (t *Tracker) isReady(ctx context.Context, h *generation.History, g *generation.Generation, p *Pod) {
	d := &generation.Definition{Pod: p.Definition, Images: map[string]lifecycle.Image{}, Config: t.config(ctx, p.Definition)}
	for name, c := range p.Snapshot.Facts.Containers {
		if d.Pod.Container(name) != nil && c.Image.ID != "" {
			d.Images[name] = c.Image
		}
	}
	g.Outcome, g.Message, g.Definition = generation.Ready, "", d
	h.Trim()
	if g.Number > 1 {
		t.o.Add(event.UpdateCompleted, p.Name, p.UID, event.Fields{"generation": strconv.Itoa(g.Number)})
	}
}

// hasFailed records that a generation has failed, and returns to the one before that was ready if there is one.
func (t *Tracker) hasFailed(ctx context.Context, h *generation.History, g *generation.Generation, p *Pod, why string, rollback bool) {
	number := strconv.Itoa(g.Number)
	target := h.Target(g.Number)
	if !rollback || target == nil {
		g.Outcome, g.Message = generation.Failed, why
		if g.Number > 1 { // the first one is no update
			t.o.Add(event.UpdateFailed, p.Name, p.UID, event.Fields{"generation": number, "error": why})
		}
		return
	}
	i := generation.Instead{
		Digest: g.Digest, Number: target.Number, Failed: g.Number, Why: why, At: t.o.Now(), Definition: t.pinned(ctx, target.Definition),
	}
	h.Return(i)
	t.o.Add(event.RollbackStarted, p.Name, p.UID, event.Fields{"generation": number, "target": strconv.Itoa(i.Number), "error": why})
}
