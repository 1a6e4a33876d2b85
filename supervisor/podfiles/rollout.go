package podfiles

import (
	"context"
	"fmt"
	"strconv"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
)

// Rollout is the generations of a pod of the pods directory.
type Rollout struct {
	Pod     string
	File    string
	History *History // a copy
	// Newer is set if the file has changed since the newest generation, or newer images are requested.
	Newer bool
	// Changing is set if the pod does not have the definition yet that is to run.
	Changing bool
}

// NoRolloutError reports that a pod has no generations.
type NoRolloutError struct {
	Pod, Why  string
	Scheduled bool // it is started by its schedule
}

func (e *NoRolloutError) Error() string {
	return fmt.Sprintf("pod %q has no generations: %s", e.Pod, e.Why)
}

// Rollout returns the generations of a pod. The error is a [*NoRolloutError] if the pod has no file in the directory.
func (s *Set) Rollout(ctx context.Context, pod string) (Rollout, error) {
	if err := s.begin(ctx); err != nil {
		return Rollout{}, fmt.Errorf("rollout of pod %q: %w", pod, err)
	}
	defer s.turn.Unlock()
	if err := s.load(ctx); err != nil {
		return Rollout{}, fmt.Errorf("rollout of pod %q: %w", pod, err)
	}
	return s.facts.rollout(pod)
}

// rollout describes the generations of a pod.
func (f *facts) rollout(pod string) (Rollout, error) {
	p, exists := f.pods[pod]
	h, c := f.histories[pod], f.defining(pod)
	switch {
	case c != nil && c.pod.Schedule != nil:
		return Rollout{}, &NoRolloutError{pod, "it is started by its schedule", true}
	case exists && p.file == "":
		return Rollout{}, &NoRolloutError{Pod: pod, Why: "it has no file in the pods directory"}
	case !exists && h == nil && c == nil:
		return Rollout{}, &NoRolloutError{Pod: pod, Why: "it does not exist"}
	case h == nil:
		h = &History{Pod: pod}
	}
	r := Rollout{Pod: pod, File: p.file, History: h.Clone(), Newer: f.unsettled()}
	if c != nil {
		t := f.target(c)
		_, working := f.working[pod]
		r.Newer = r.Newer || h.Carried() != c.hex() || exists && t == c && len(f.newerFor(&p, c)) > 0
		r.Changing = !exists || working || len(f.changes(&p, t)) > 0
		if r.File == "" { // the pod is being replaced
			r.File = c.path
		}
	}
	return r, nil
}

// Undo makes a pod run an earlier generation in place of its file, until the file is changed. The file is kept. Generation 0 is the last
// one before the running one that was ready. The generation of a file that was rolled back is tried again. The error is a [*ConflictError]
// if the generation cannot run, and a [*NoRolloutError] if the pod has no file in the directory; by is the client, for people.
func (s *Set) Undo(ctx context.Context, pod string, to int, by string) (Rollout, error) {
	if err := s.begin(ctx); err != nil {
		return Rollout{}, fmt.Errorf("undo rollout of pod %q: %w", pod, err)
	}
	defer s.turn.Unlock()
	if err := s.load(ctx); err != nil {
		return Rollout{}, fmt.Errorf("rollout of pod %q: %w", pod, err)
	}
	f := &s.facts
	target, err := f.undo(pod, to)
	if err != nil {
		return Rollout{}, err
	}
	c := f.defining(pod)
	if target == nil {
		s.retry(ctx, pod)
	} else {
		s.returnTo(ctx, pod, c.hex(), target, by)
	}
	delete(f.attempts, pod)
	delete(f.newer, pod)
	if g := f.histories[pod].Running(); f.instead(pod) == nil && g.Definition != nil && len(g.Definition.Images) > 0 {
		f.newer[pod] = newer{c.digest, g.Definition.Images} // the same text may have run with other images
	}
	s.wake()
	r, err := f.rollout(pod)
	r.Newer = r.Newer && f.instead(pod) != nil // otherwise the file is carried out
	return r, err
}

// retry records that a file is carried out again in place of which another generation runs. s.turn must be held.
func (s *Set) retry(ctx context.Context, pod string) {
	h := s.generations.of(pod)
	s.resumes(h, s.facts.pods[pod].uid)
	h.Retry()
	s.generations.put(h)
	s.generations.save(ctx)
}

// returnTo records that a generation runs in place of a file with a digest because a person has requested it. s.turn must be held.
func (s *Set) returnTo(ctx context.Context, pod, digest string, target *Generation, by string) {
	i := Instead{
		Digest: digest, Number: target.Number, Why: "requested by " + by, By: by, At: s.pods.Now(),
		Definition: s.generations.pinned(ctx, target.Definition),
	}
	h := s.generations.of(pod)
	if newest := h.Newest(); newest.Digest == digest {
		i.Failed = newest.Number
	}
	h.Return(i)
	s.generations.put(h)
	s.emit(api.EventRolloutUndone, pod, s.facts.pods[pod].uid, event.Fields{"generation": strconv.Itoa(i.Number), "by": by})
	s.generations.save(ctx)
}
