// Package fakefiles is a pods directory in memory, for tests of the API and of the commands. It has the contract of package podfiles as far
// as clients see it. A changed file replaces the pod.
package fakefiles

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
)

// Set is a pods directory in memory.
type Set struct {
	Dir  string
	Pods *supervisor.Supervisor
	// Changes are the changes that Apply reports for a file that exists with another text.
	Changes []change.Change
	// OnRemove is called before the file of a pod is removed; nil: not called. Its error is the error of Remove.
	OnRemove func(pod string) error
	// OnCreate is called by Apply with the function that creates the pod, which may be called later; nil: Apply creates the pod.
	OnCreate func(create func() error) error

	mu      sync.Mutex
	texts   map[string]string // by pod
	owned   map[string]bool   // the pods that were created from a file
	refused []podfiles.File
	changed chan struct{}

	histories map[string]*podfiles.History // by pod
	changing  map[string]bool              // by pod: Undo was called, and Reached was not
	suspended bool
}

// New returns an empty set.
func New(dir string, pods *supervisor.Supervisor) *Set {
	return &Set{
		Dir: dir, Pods: pods, texts: map[string]string{}, owned: map[string]bool{}, changed: make(chan struct{}),
		histories: map[string]*podfiles.History{}, changing: map[string]bool{},
	}
}

// Refuse adds a file that is refused.
func (s *Set) Refuse(f podfiles.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, f)
	s.notify()
}

// Lose removes all files, as when the directory is lost. The pods keep running.
func (s *Set) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.texts)
	s.notify()
}

// Suspend implements the interface of the API.
func (s *Set) Suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended = true
}

// Suspended reports whether Suspend was called.
func (s *Set) Suspended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspended
}

// Text returns the text of the file of a pod; empty: there is none.
func (s *Set) Text(pod string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[pod]
}

// Files implements the interface of the API.
func (s *Set) Files() []podfiles.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []podfiles.File
	for pod := range s.texts {
		list = append(list, s.file(pod))
	}
	return append(list, s.refused...)
}

// Changed implements the interface of the API.
func (s *Set) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Apply implements the interface of the API.
func (s *Set) Apply(ctx context.Context, file *spec.Accepted, o podfiles.ApplyOptions) (podfiles.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, text, extension := file.Pod, file.Text, spec.Extension(file.Path, file.Text)
	name := pod.Name
	plan := podfiles.Plan{Pod: name, File: filepath.Join(s.Dir, name+extension), Outcome: api.PodCreated}
	old, exists := s.texts[name]
	running, taken := s.Pods.Pod(name)
	switch {
	case taken && running.Owner.File == "":
		return podfiles.Plan{}, &supervisor.NameTakenError{Name: name, Holder: running.Owner.By}
	case exists && o.Create:
		return podfiles.Plan{}, &podfiles.ConflictError{
			Message: "pod \"" + name + "\" already exists", Hint: "update it with podstead apply FILE",
		}
	case exists && old == string(text):
		plan.Outcome = api.PodUnchanged
		if h := s.histories[name]; h.Instead != nil && h.Instead.By == "" {
			plan.Instead = s.instead(name)
		}
	case exists:
		plan.Outcome, plan.Changes, plan.Undone = api.PodConfigured, s.Changes, s.histories[name].Instead.Undo()
	}
	if o.DryRun || plan.Outcome == api.PodUnchanged {
		return plan, nil
	}
	if exists {
		if err := s.end(ctx, name); err != nil {
			return podfiles.Plan{}, err
		}
	}
	s.texts[name], s.owned[name] = string(text), true
	s.begin(pod, plan.Changes, o.By)
	s.notify()
	if pod.Systemd != nil {
		s.refused = append(s.refused,
			podfiles.File{Path: plan.File, Pod: name, Refused: errors.New("started by podstead@" + name + ".service")})
		return plan, nil
	}
	create := func() error {
		_, err := s.Pods.Add(pod, state.Owner{By: "pods directory", File: s.path(name)})
		return err
	}
	if s.OnCreate != nil {
		return plan, s.OnCreate(create)
	}
	return plan, create()
}

// Remove implements the interface of the API.
func (s *Set) Remove(ctx context.Context, pod string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.OnRemove != nil {
		if err := s.OnRemove(pod); err != nil {
			return "", err
		}
	}
	defer s.notify()
	for i, f := range s.refused {
		if f.Pod == pod {
			s.refused = append(s.refused[:i:i], s.refused[i+1:]...)
			return f.Path, nil
		}
	}
	path := ""
	if _, exists := s.texts[pod]; exists {
		delete(s.texts, pod)
		delete(s.histories, pod)
		path = s.path(pod)
	}
	if !s.owned[pod] {
		return path, nil
	}
	delete(s.owned, pod)
	err := s.Pods.Stop(ctx, pod, supervisor.StopOptions{Delete: true, By: "pods directory"})
	if errors.Is(err, supervisor.ErrNotFound) {
		err = nil
	}
	return path, err
}

// ConfirmLoss implements the interface of the API.
func (s *Set) ConfirmLoss(ctx context.Context, keep []string, dryRun bool) (map[string]string, error) {
	paths := map[string]string{}
	s.mu.Lock()
	for pod := range s.owned {
		if _, exists := s.texts[pod]; !exists && !slices.Contains(keep, pod) {
			paths[pod] = s.path(pod)
		}
	}
	s.mu.Unlock()
	for pod := range paths {
		if dryRun {
			continue
		}
		if _, err := s.Remove(ctx, pod); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// end kills and deletes a pod, and waits for that. s.mu must be held.
func (s *Set) end(ctx context.Context, pod string) error {
	err := s.Pods.Stop(ctx, pod, supervisor.StopOptions{Delete: true, Grace: new(time.Duration), By: "pods directory"})
	if err != nil {
		return err
	}
	for {
		changed := s.Pods.Changed()
		if _, exists := s.Pods.Pod(pod); !exists {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Set) path(pod string) string { return filepath.Join(s.Dir, pod+".toml") }

// notify reports a change. s.mu must be held.
func (s *Set) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
