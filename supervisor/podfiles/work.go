package podfiles

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
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

// progress is what a worker is doing.
type progress struct {
	text      string
	preparing bool // see [File]
}

func (w *worker) progress() progress {
	if container := w.pulling.Load(); container != nil {
		return progress{text: "update is being prepared, pulling the image of container " + *container}
	}
	return progress{text: "update is being prepared", preparing: w.step.kind == redefine}
}

// errOutdated ends a step because the pod has changed meanwhile. The next comparison decides again.
var errOutdated = errors.New("the pod has changed")

// carryOut starts workers for the steps, and cancels those whose aim is outdated. s.turn must be held.
func (s *Set) carryOut(ctx context.Context, r *result) {
	for name, w := range s.workers {
		if w.step.target == nil {
			continue
		}
		want := r.targets[name]
		if want == nil || want.path != w.step.target.path || want.digest != w.step.target.digest || s.world.outdates(&w.step) {
			w.cancel()
		}
	}
	if ctx.Err() != nil || time.Now().Before(s.suspended) {
		return
	}
	for _, step := range r.steps {
		if s.workers[step.pod] != nil {
			continue // the next comparison follows when it is done
		}
		ctx, cancel := context.WithCancel(ctx)
		w := &worker{step: step, pods: s.world.fingerprint(), before: s.world.attempts[step.pod].err, cancel: cancel}
		s.workers[step.pod] = w
		s.running.Go(func() {
			defer cancel()
			s.finish(ctx, w, s.perform(ctx, w))
		})
	}
}

// finish records the outcome of a step.
func (s *Set) finish(ctx context.Context, w *worker, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	defer s.wake()
	delete(s.workers, w.step.pod)
	if ctx.Err() != nil || errors.Is(err, errOutdated) || errors.Is(err, supervisor.ErrNotFound) || errors.Is(err, supervisor.ErrLeaving) {
		delete(s.world.attempts, w.step.pod) // another step follows
		return
	}
	now, key := time.Now(), w.step.key()
	a := attempt{key: key, err: err, count: 1, next: now.Add(time.Second), pods: w.pods, replace: w.step.kind == replace}
	if before := s.world.attempts[w.step.pod]; before.key == key {
		a.count = before.count + 1
	}
	if _, must := errors.AsType[*supervisor.ReplaceError](err); must {
		a.err, a.next, a.replace = nil, now, true
	} else if err != nil {
		delay := s.delay(a.count)
		a.next, a.changed = now.Add(delay), now.Add(delay/10)
		s.log.LogAttrs(ctx, slog.LevelWarn, "pod file not carried out", slog.String("pod", w.step.pod), slog.String("file", w.step.file), slog.Any("error", err))
	}
	if err == nil && w.step.target != nil && !s.world.outdates(&w.step) {
		delete(s.world.newer, w.step.pod)
	}
	s.world.attempts[w.step.pod] = a
	if isRefused := a.err != nil && w.step.kind != redefine && w.step.target != nil && w.step.target.instead == nil; isRefused {
		if refused, ok := errors.AsType[*supervisor.RefusedError](a.err); ok {
			s.rollouts.Refused(ctx, w.step.target.pod, w.step.target.hex(), refused)
		}
	}
}

// delay is the time before a step is repeated that has failed count times.
func (s *Set) delay(count int) time.Duration {
	d := s.times.retry
	for range count - 1 {
		if d *= 2; d >= s.times.maxRetry {
			return s.times.maxRetry
		}
	}
	return d
}

// perform carries out a step. After the end of ctx it begins no change.
func (s *Set) perform(ctx context.Context, w *worker) error {
	step := &w.step
	if step.kind == remove {
		if p, ok := s.pod(step.pod); ok && p.uid == step.uid && p.held != "" {
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
	if p, ok := s.pod(step.pod); step.kind == replace && (!ok || p.uid != step.uid || p.stopped || p.deleting || p.held != "") {
		return errOutdated
	}
	if staged.RollsBack, err = s.beginRollout(ctx, step, staged.Images, owner.By); err != nil {
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
	if staged.RollsBack, err = s.beginRollout(ctx, step, staged.Images, owner.By); err != nil { // again: stopping the old pod took time
		return err
	}
	_, err = s.pods.AddStaged(step.target.pod, owner, staged)
	return err
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
		if p, ok := s.pod(step.pod); !ok || p.uid != step.uid {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Set) pod(name string) (pod, bool) {
	p, ok := podsOf(s.pods.Pods())[name]
	return p, ok
}
