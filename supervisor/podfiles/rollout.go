package podfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/generation"
)

// Values are the config maps and secrets of the host. The methods return the values by key, and an error that matches [fs.ErrNotExist] if
// there is no such object. Inline objects of the pod take precedence.
type Values interface {
	ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error)
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
}

// applied is the client that has applied a file.
type applied struct {
	digest [32]byte
	client string
}

// Rollout is the generations of a pod of the pods directory.
type Rollout struct {
	Pod     string
	File    string
	History *generation.History // a copy
	// Newer reports that the newest content of the file is not carried out yet. That of a file that was rolled back is not newer.
	Newer bool
}

// NoRolloutError reports that a pod has no generations.
type NoRolloutError struct{ Pod, Why string }

func (e *NoRolloutError) Error() string {
	return fmt.Sprintf("pod %q has no generations: %s", e.Pod, e.Why)
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
	if err := s.loadHistories(ctx); err != nil {
		return Rollout{}, fmt.Errorf("rollout of pod %q: %w", pod, err)
	}
	p, exists := s.world.pods[pod]
	h, c := s.histories[pod], s.world.defining(pod)
	switch {
	case exists && p.file == "":
		return Rollout{}, &NoRolloutError{pod, "it has no file in the pods directory"}
	case !exists && h == nil && c == nil:
		return Rollout{}, &NoRolloutError{pod, "it does not exist"}
	case h == nil:
		h = &generation.History{Pod: pod}
	}
	r := Rollout{Pod: pod, File: p.file, History: h.Clone(), Newer: s.world.unsettled}
	if c != nil {
		r.Newer = r.Newer || h.Carried() != c.hex()
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

// Undo makes a pod run an earlier generation in place of its file, until the file is changed. The file is kept. Generation 0 is the last one
// before the running one that was ready. The generation of a file that was rolled back is tried again. The error is a [*ConflictError] if the
// generation cannot run, and a [*NoRolloutError] if the pod has no file in the directory; by is the client, for people.
func (s *Set) Undo(ctx context.Context, pod string, to int, by string) (Rollout, error) {
	if err := s.begin(ctx); err != nil {
		return Rollout{}, fmt.Errorf("undo rollout of pod %q: %w", pod, err)
	}
	defer s.turn.Unlock()
	before, err := s.rollout(ctx, pod)
	if err != nil {
		return Rollout{}, err
	}
	c := s.world.defining(pod)
	p := s.world.pods[pod]
	switch {
	case c == nil:
		return Rollout{}, conflictf("no valid file of the pods directory defines pod %q alone", pod)
	case p.deleting:
		return Rollout{}, conflictf("pod %q is being deleted", pod)
	}
	h := before.History
	if h.Instead != nil && h.Instead.Digest == c.hex() && to != 0 && to == h.Instead.Failed {
		h.Retry()
	} else if err := s.undo(ctx, h, &p, c, to, by); err != nil {
		return Rollout{}, err
	}
	s.histories[pod] = h
	s.unsaved[pod] = true
	s.aim(pod)
	delete(s.world.attempts, pod)
	s.saveHistories(ctx)
	s.keeper.keep(pod, h.Images())
	s.wake()
	before.History = h.Clone()
	return before, nil
}

// undo makes a generation run in place of a file.
func (s *Set) undo(ctx context.Context, h *generation.History, p *pod, c *content, to int, by string) error {
	running := h.Running()
	if running == nil {
		return conflictf("pod %q has no earlier generation", p.name)
	}
	// The file may have been changed, while the pod still runs what it defined before.
	t, _ := s.world.target(c)
	pending := p.snapshot != nil && len(s.between(p, t)) > 0
	target := h.Find(to)
	if to == 0 {
		target = h.Target(running.Number)
		if pending {
			target = running
		}
	}
	switch {
	case target == nil && to == 0:
		return conflictf("pod %q has no earlier generation that was ready", p.name)
	case target == nil:
		return conflictf("pod %q has no generation %d", p.name, to)
	case target == running && !pending:
		return conflictf("generation %d of pod %q runs already", target.Number, p.name)
	case target.Definition == nil:
		return conflictf("generation %d of pod %q is not kept any more", target.Number, p.name)
	}
	failed := 0
	if newest := h.Newest(); newest.Digest == c.hex() {
		failed = newest.Number
	}
	number := target.Number
	h.Return(generation.Instead{
		Digest: c.hex(), Number: number, Failed: failed, Why: "requested by " + by, By: by, At: s.pods.Now(), Definition: s.pinned(ctx, target.Definition),
	})
	s.add(event.RolloutUndone, p.name, p.uid, event.Fields{"generation": fmt.Sprint(number), "by": by})
	return nil
}

// resume carries out the file of a pod again. s.turn must be held.
func (s *Set) resume(ctx context.Context, pod string) {
	h := s.histories[pod].Clone()
	h.Retry()
	s.histories[pod] = h
	s.unsaved[pod] = true
	s.aim(pod)
	s.saveHistories(ctx)
}

// readConfig reads the config maps and secrets of the host that a pod refers to.
func readConfig(values Values, p *spec.Pod) (generation.Config, error) {
	c := generation.Config{ConfigMaps: map[string]map[string][]byte{}, Secrets: map[string]map[string][]byte{}}
	var errs []error
	read := func(into map[string]map[string][]byte, name string, from func(*spec.Pod, string) (map[string][]byte, error)) {
		v, err := from(p, name)
		if err == nil {
			into[name] = v
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for name := range p.ConfigMapNames() {
		if !slices.ContainsFunc(p.ConfigMaps, func(c spec.ConfigMap) bool { return c.Name == name }) {
			read(c.ConfigMaps, name, values.ConfigMap)
		}
	}
	for name := range p.SecretNames() {
		if !slices.ContainsFunc(p.Secrets, func(s spec.Secret) bool { return s.Name == name && s.Credential == "" }) {
			read(c.Secrets, name, values.Secret)
		}
	}
	return c, errors.Join(errs...)
}
