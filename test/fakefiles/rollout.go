package fakefiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// begin adds a generation of a pod. s.mu must be held.
func (s *Set) begin(pod *spec.Pod, changes []change.Change, by string) {
	h := s.histories[pod.Name]
	if h == nil {
		h = &podfiles.History{Pod: pod.Name}
		s.histories[pod.Name] = h
	}
	h.Begin(podfiles.Generation{
		Digest: digest(s.texts[pod.Name]), Since: s.Pods.Now(), By: by, Changes: changes, Definition: &podfiles.Definition{Pod: pod},
	})
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Judge sets what became of the newest generation of a pod. With [api.GenerationRolledBack], the last generation that was ready is to
// run in its place; the definition of the pod does not change.
func (s *Set) Judge(pod string, outcome api.GenerationOutcome, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	h := s.histories[pod]
	newest := h.Newest()
	if outcome != api.GenerationRolledBack {
		newest.Outcome, newest.Message = outcome, why
		return
	}
	target := h.Target(newest.Number)
	h.Return(podfiles.Instead{
		Digest: newest.Digest, Number: target.Number, Failed: newest.Number, Why: why, At: s.Pods.Now(), Definition: target.Definition,
	})
}

// Reached reports that a pod has the definition of the generation that was requested.
func (s *Set) Reached(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changing[pod] = false
}

// Returned reports that a pod is ready again after it returned to an earlier generation.
func (s *Set) Returned(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histories[pod].Instead.Completed, s.changing[pod] = true, false
	s.notify()
}

// file returns the file of a pod, which may have been rolled back. s.mu must be held.
func (s *Set) file(pod string) podfiles.File {
	f := podfiles.File{Path: s.path(pod), Pod: pod}
	if text := s.instead(pod); text != "" {
		f.Reason, f.Refused = api.ReasonRolledBack, fmt.Errorf("%s", text)
		if s.histories[pod].Instead.By != "" {
			f.Reason = api.ReasonRolloutUndone
		}
	}
	return f
}

// instead is why another generation runs in place of the file; empty: none. s.mu must be held.
func (s *Set) instead(pod string) string {
	h := s.histories[pod]
	if h == nil || h.Instead == nil || h.Instead.Digest != digest(s.texts[pod]) {
		return ""
	}
	return h.Instead.String()
}

// Rollout implements the interface of the API.
func (s *Set) Rollout(_ context.Context, pod string) (podfiles.Rollout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rollout(pod)
}

func (s *Set) rollout(pod string) (podfiles.Rollout, error) {
	h := s.histories[pod]
	if h == nil {
		why := "it does not exist"
		if _, exists := s.Pods.Pod(pod); exists {
			why = "it has no file in the pods directory"
		}
		return podfiles.Rollout{}, &podfiles.NoRolloutError{Pod: pod, Why: why}
	}
	return podfiles.Rollout{
		Pod: pod, File: s.path(pod), History: h.Clone(), Newer: h.Carried() != digest(s.texts[pod]), Changing: s.changing[pod],
	}, nil
}

// Undo implements the interface of the API. The definition of the pod does not change.
func (s *Set) Undo(_ context.Context, pod string, to int, by string) (podfiles.Rollout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.rollout(pod)
	if err != nil {
		return r, err
	}
	defer s.notify()
	h := s.histories[pod]
	if h.Instead != nil && to != 0 && to == h.Instead.Failed {
		h.Retry()
		return s.rollout(pod)
	}
	target := h.Find(to)
	if to == 0 {
		target = h.Target(h.Running().Number)
	}
	switch {
	case target == nil && to == 0:
		return r, &podfiles.ConflictError{Message: fmt.Sprintf("pod %q has no earlier generation that was ready", pod)}
	case target == nil:
		return r, &podfiles.ConflictError{Message: fmt.Sprintf("pod %q has no generation %d", pod, to)}
	case target == h.Running():
		return r, &podfiles.ConflictError{Message: fmt.Sprintf("generation %d of pod %q runs already", to, pod)}
	}
	h.Return(podfiles.Instead{
		Digest: digest(s.texts[pod]), Number: target.Number, Failed: h.Newest().Number, Why: "requested by " + by, By: by, At: s.Pods.Now(),
		Definition: target.Definition,
	})
	s.changing[pod] = true
	return s.rollout(pod)
}

// Vanish deletes a pod and keeps its file, as in the middle of a rollback that replaces the pod.
func (s *Set) Vanish(ctx context.Context, pod string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end(ctx, pod)
}
