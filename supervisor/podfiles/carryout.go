package podfiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// worker carries out one step. It has a goroutine of its own, so that a pod whose image cannot be pulled delays no other.
type worker struct {
	step   step
	pods   string             // when the step began, see fingerprint
	before error              // of the newest attempt
	cancel context.CancelFunc // ends preparations and waiting; a change that has begun is completed
	// pulling is the container whose image is being pulled; nil: none.
	pulling atomic.Pointer[string]
}

func (w *worker) progress() progress {
	if container := w.pulling.Load(); container != nil {
		return progress{step: w.step, text: "update is being prepared, pulling the image of container " + *container}
	}
	return progress{step: w.step, text: "update is being prepared", preparing: w.step.kind == redefine}
}

// publish emits the events of a decision, and shows the files. s.turn must be held.
func (s *Set) publish(d *decision) {
	f := &s.facts
	names, _ := f.generationsOf()
	s.mu.Lock()
	s.names = names
	s.mu.Unlock()
	for i := range d.reports {
		r := &d.reports[i]
		s.add(r.kind, r.pod, r.uid, r.fields)
		switch {
		case r.file == "":
			f.lost = r.kind == api.EventPodsDirLost
		case r.state == "":
			delete(f.reported, r.file)
		default:
			f.reported[r.file] = r.state
		}
	}
	if !f.unloaded.IsZero() {
		return
	}
	unchanged := slices.EqualFunc(f.shown, d.files, same)
	maps.DeleteFunc(f.reported, func(key string, _ string) bool {
		return !slices.ContainsFunc(d.files, func(shown File) bool { return shown.key() == key })
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	f.shown, s.files = d.files, d.files
	if unchanged { // but for times
		return
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// add adds an event.
func (s *Set) add(kind api.EventKind, pod, uid string, fields event.Fields) {
	e := event.New(kind, time.Now(), pod, fields)
	e.UID = uid
	s.events.Add(e)
}

// carryOut cancels the workers whose aim is outdated, has pods kept, and starts workers for the steps. s.turn must be held.
func (s *Set) carryOut(ctx context.Context, d *decision) {
	for _, name := range d.cancel {
		s.workers[name].cancel()
	}
	for _, name := range d.used {
		delete(s.facts.newer, name)
	}
	if ctx.Err() != nil || time.Now().Before(s.facts.suspended) {
		return
	}
	for i := range d.keep {
		s.keep(ctx, &d.keep[i])
	}
	for _, step := range d.steps {
		if s.workers[step.pod] != nil {
			continue // the next decision follows when it is done
		}
		ctx, cancel := context.WithCancel(ctx)
		w := &worker{step: step, pods: s.facts.fingerprint(), before: s.facts.attempts[step.pod].err, cancel: cancel}
		s.workers[step.pod] = w
		s.running.Go(func() {
			defer cancel()
			s.finish(ctx, w, s.perform(ctx, w))
		})
	}
}

// keep has a pod kept that is held for a rollback. s.turn must be held.
func (s *Set) keep(ctx context.Context, p *pod) {
	s.facts.keeping[p.uid] = true
	s.running.Go(func() {
		if err := s.pods.Keep(ctx, p.name, p.uid); err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "pod not kept", slog.String("pod", p.name), slog.Any("error", err))
		}
		s.turn.Lock()
		defer s.turn.Unlock()
		delete(s.facts.keeping, p.uid)
	})
}

// finish records the outcome of a step.
func (s *Set) finish(ctx context.Context, w *worker, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	defer s.wake()
	step, f := &w.step, &s.facts
	delete(s.workers, step.pod)
	if ctx.Err() != nil {
		err = errOutdated
	}
	a, ended := f.after(step, w.pods, err, time.Now())
	if !ended {
		delete(f.attempts, step.pod) // another step follows
		return
	}
	f.attempts[step.pod] = a
	if err == nil && step.target != nil && !f.outdates(step) {
		delete(f.newer, step.pod)
	}
	if a.err == nil {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "pod file not carried out",
		slog.String("pod", step.pod), slog.String("file", step.file), slog.Any("error", err))
	refused, is := errors.AsType[*supervisor.RefusedError](a.err)
	if is && step.target != nil && step.kind != redefine && f.judgeRefused(step.target) {
		s.record(ctx, record{verdict: rolledBack, pod: pod{name: step.pod}, target: step.target, why: refused.Error()})
		s.generations.save(ctx)
	}
}

// perform carries out a step. After the end of ctx it begins no change.
func (s *Set) perform(ctx context.Context, w *worker) error {
	step := &w.step
	if step.kind == remove {
		if !step.permits(s.pod(step.pod)) {
			return errOutdated
		}
		return s.stop(ctx, step, "removed")
	}
	owner := step.owner("the pods directory (" + filepath.Base(step.file) + ")")
	staged, err := s.stage(ctx, w)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	if refused, ok := errors.AsType[*supervisor.RefusedError](w.before); ok {
		staged.Refused = refused.Refusals
	}
	if !step.permits(s.pod(step.pod)) {
		return errOutdated
	}
	if staged.RollsBack, err = s.beginGeneration(ctx, step, staged.Images, owner.By); err != nil {
		return err
	}
	switch step.kind {
	case add:
		_, err := s.pods.AddStaged(step.target.pod, owner, staged)
		return err
	case redefine:
		_, err := s.pods.Redefine(context.WithoutCancel(ctx), step.uid, step.target.pod, staged, owner)
		return err
	case replace, remove:
	}
	if err := s.stop(ctx, step, "changed"); err != nil {
		return err
	}
	if err := s.untilDeleted(ctx, step); err != nil {
		return err
	}
	if staged.RollsBack, err = s.beginGeneration(ctx, step, staged.Images, owner.By); err != nil { // again: stopping the old pod took time
		return err
	}
	_, err = s.pods.AddStaged(step.target.pod, owner, staged)
	return err
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

// stage provides what the target of a step needs. An earlier generation uses the images that it had, without a registry.
func (s *Set) stage(ctx context.Context, w *worker) (supervisor.Staged, error) {
	switch target := w.step.target; {
	case target.instead != nil:
		return supervisor.Staged{Images: target.instead.Definition.Images}, nil
	case w.step.kind == add:
		return supervisor.Staged{}, nil
	default:
		return s.pods.Stage(ctx, target.pod, w.step.newer, func(container string, _ lifecycle.Progress) {
			if before := w.pulling.Swap(&container); before == nil || *before != container {
				s.wake()
			}
		})
	}
}

// stop stops the pod of a step and deletes it. It does not wait until the pod is deleted.
func (s *Set) stop(ctx context.Context, step *step, why string) error {
	by := "the pods directory (" + filepath.Base(step.file) + " " + why + ")"
	if step.file == "" {
		by = "the pods directory (orphaned containers)"
	}
	return s.pods.Stop(context.WithoutCancel(ctx), step.pod, supervisor.StopOptions{UID: step.uid, Delete: true, By: by})
}

// untilDeleted waits until the pod of a step is deleted.
func (s *Set) untilDeleted(ctx context.Context, step *step) error {
	for {
		changed := s.pods.Changed()
		if p := s.pod(step.pod); p == nil || p.uid != step.uid {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pod returns a pod as it is now; nil: it does not exist.
func (s *Set) pod(name string) *pod {
	if p, exists := podsOf(s.pods.Pods())[name]; exists {
		return &p
	}
	return nil
}
