package podfiles

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/diskcall"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

// pass compares the directory with the pods, and starts what is missing. It lists the directory if list is set. It returns when the next
// pass is due without a change; zero: never.
func (s *Set) pass(ctx context.Context, list bool, removed map[string]bool) time.Time {
	if s.turn.LockContext(ctx) != nil {
		return time.Time{}
	}
	defer s.turn.Unlock()
	if s.look(ctx, list, removed) != nil && ctx.Err() != nil {
		return time.Time{}
	}
	if err := s.rollouts.Load(ctx); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "generations of the pods cannot be read, pod files are not carried out", slog.Any("error", err))
		if s.unloaded.IsZero() {
			s.unloaded = time.Now()
		}
		s.keepHeld(ctx, &result{})
		s.carriedOut()
		return time.Now().Add(s.times.retry)
	}
	s.unloaded = time.Time{}
	r := s.world.plan()
	if s.observe(ctx, &r) {
		again := r.again
		r = s.world.plan()
		r.lookAgain(again)
	}
	r.lookAgain(s.settled)
	r.lookAgain(s.reportLoss())
	s.keepHeld(ctx, &r)
	s.publish(r.files) // who sees what a step changes finds why
	s.carryOut(ctx, &r)
	s.carriedOut()
	return r.again
}

// look updates the world. The error is that of the listing. s.turn must be held.
func (s *Set) look(ctx context.Context, list bool, removed map[string]bool) (err error) {
	w := &s.world
	w.now = time.Now()
	first := w.listed.IsZero()
	if list {
		w.pods = podsOf(s.pods.Pods())
		err = s.list(ctx, removed)
	}
	w.pods = podsOf(s.pods.Pods()) // listing may have taken long
	if list {
		w.findMissing(time.Now())
		s.settleFirst(first)
		s.forget()
	}
	s.forgetRollouts()
	w.working = map[string]progress{}
	for name, worker := range s.workers {
		w.working[name] = worker.progress()
	}
	return err
}

// forget removes what is known about pods and files that do not exist any more. s.turn must be held.
func (s *Set) forget() {
	w := &s.world
	names, followed := map[string]bool{}, map[string]bool{}
	for name, p := range w.pods {
		names[name], followed[p.file] = true, true
	}
	maps.DeleteFunc(s.compared, func(name string, _ comparison) bool { return !names[name] })
	for _, c := range w.contents {
		if c.pod != nil {
			names[c.pod.Name] = true
		}
	}
	for name, worker := range s.workers {
		names[name], followed[worker.step.file] = true, true
	}
	maps.DeleteFunc(w.attempts, func(name string, _ attempt) bool { return !names[name] })
	maps.DeleteFunc(w.confirmed, func(path string, _ bool) bool { return w.present[path] || !followed[path] })
	maps.DeleteFunc(s.references, func(path string, d *diskcall.Disk) bool { return !w.present[path] && d.Idle() })
	maps.DeleteFunc(s.trusted, func(path string, _ [32]byte) bool { return !w.present[path] })
	maps.DeleteFunc(s.appliedBy, func(path string, _ applied) bool { return !w.present[path] })
	maps.DeleteFunc(w.targets, func(name string, _ *content) bool { return !names[name] })
	maps.DeleteFunc(w.newer, func(name string, _ newer) bool { return !names[name] })
}

// forgetRollouts removes the generations of pods that do not exist any more. s.turn must be held.
func (s *Set) forgetRollouts() {
	w := &s.world
	if w.listed.IsZero() || w.directory.lost != nil || w.unsettled || s.listError != "" {
		return
	}
	names := map[string]bool{}
	for name := range w.pods {
		names[name] = true
	}
	for name := range s.workers {
		names[name] = true
	}
	for _, c := range w.contents {
		if c.pod == nil {
			return // it may be the file of any pod
		}
		names[c.pod.Name] = true
	}
	s.rollouts.Forget(names)
}

// settleFirst makes the directory settle, as after a loss, if files of pods are missing in the first listing: it may be in the middle of
// being copied while the daemon starts. s.turn must be held.
func (s *Set) settleFirst(first bool) {
	w := &s.world
	if !first || w.directory.lost != nil {
		return
	}
	for _, p := range w.pods {
		if a, missing := w.missing[p.name]; missing && filepath.Dir(a.file) == s.dir || w.orphaned(&p) {
			w.directory.settles = w.now.Add(s.times.settle)
			return
		}
	}
}

// owned reports whether a pod follows a file of the directory whose removal was not confirmed, or did before its state file was lost.
func (s *Set) owned() bool {
	for _, p := range s.world.pods {
		if s.world.orphaned(&p) {
			return true
		}
		if p.file != "" && filepath.Dir(p.file) == s.dir && !p.deleting && !s.world.confirmed[p.file] {
			return true
		}
	}
	return false
}

// list lists the directory, and takes the files that have changed, apart from those that may be half-written. After the end of ctx it
// changes nothing.
func (s *Set) list(ctx context.Context, removed map[string]bool) error {
	w := &s.world
	listed := s.listed
	l, err := diskcall.Do(ctx, s.disk, listed.List)
	if err != nil {
		s.listed = watch.NewDir(s.dir) // the listing before may not have ended
	}
	accepted := s.acceptChanged(ctx, &l)
	if ctx.Err() != nil {
		s.listed = watch.NewDir(s.dir) // what it has read is not taken
		return context.Cause(ctx)
	}
	w.directory = w.directory.observe(&l, err, removed, s.owned(), w.now, s.times.settle)
	s.logListing(ctx, err)
	present, contents, changing := map[string]bool{}, map[string]*content{}, map[string]*content{}
	s.settled = time.Time{}
	for i := range l.Files {
		f := &l.Files[i]
		path := filepath.Join(s.dir, f.Name)
		present[path] = true
		c, due := s.take(f, path, accepted[i])
		if !due.IsZero() {
			changing[path] = accepted[i]
			if s.settled.IsZero() || due.Before(s.settled) {
				s.settled = due
			}
		}
		if c != nil {
			contents[path] = c
		}
	}
	for _, name := range l.Omitted {
		path := filepath.Join(s.dir, name)
		present[path] = true
		contents[path] = unreadable(path, fmt.Errorf("pods directory %s has more than %d pod files", s.dir, watch.MaxFiles))
	}
	w.listed, w.present, w.contents, w.changing, w.unsettled = w.now, present, contents, changing, !s.settled.IsZero()
	return err
}

// maxAccepting is how many files are validated at the same time.
const maxAccepting = 64

// acceptChanged validates the files of a listing that have changed, with those that they refer to. The result has the same indexes; nil:
// the file has not changed. The content of a file that refers to one that does not respond cannot be read. s.turn must be held.
func (s *Set) acceptChanged(ctx context.Context, l *watch.Listing) []*content {
	accepted := make([]*content, len(l.Files))
	var all sync.WaitGroup
	free := make(chan struct{}, maxAccepting)
	for i := range l.Files {
		f := &l.Files[i]
		if f.Err != nil || f.Text == nil {
			continue
		}
		path := filepath.Join(s.dir, f.Name)
		d := s.referenced(path)
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			c, err := diskcall.Do(ctx, d, func() (*content, error) { return accept(path, f.Text), nil })
			if err != nil {
				c = unreadable(path, fmt.Errorf("read the files that %s refers to: %w", path, err))
			}
			accepted[i] = c
		})
	}
	all.Wait()
	return accepted
}

// take returns the content of a file that counts: the newest, or the one before if the newest may be half-written until due.
func (s *Set) take(f *watch.File, path string, next *content) (c *content, due time.Time) {
	before := s.world.contents[path]
	switch {
	case f.Err != nil:
		if before != nil && before.err != nil && before.err.Error() == f.Err.Error() {
			return before, time.Time{}
		}
		return unreadable(path, f.Err), time.Time{}
	case f.Text == nil:
		return before, time.Time{}
	}
	if before != nil && before.err == nil && before.digest == next.digest {
		return before, time.Time{}
	}
	if next.err != nil { // look at it again in the next listing, although it has not changed
		s.listed.Forget(f.Name)
		return next, time.Time{}
	}
	wait := s.times.quiet
	if next.pod == nil {
		wait = s.times.halfWritten
	}
	if trusted, ok := s.trusted[path]; ok && trusted == next.digest {
		delete(s.trusted, path)
		return next, time.Time{}
	}
	// A change in the future is one before the clock was set back. A listing may take long, so now is not the time at which it began.
	if s.world.now.Sub(f.Changed) < wait && !f.Changed.After(time.Now()) {
		s.listed.Forget(f.Name)
		return before, f.Changed.Add(wait)
	}
	return next, time.Time{}
}

// logListing logs that the directory cannot be listed, if that is new. A directory that does not exist is normal.
func (s *Set) logListing(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != s.listError {
		s.log.LogAttrs(ctx, slog.LevelInfo, "cannot list the pods directory", slog.String("error", text))
	}
	s.listError = text
}

func podsOf(snapshots []supervisor.Snapshot) map[string]pod {
	pods := map[string]pod{}
	for i := range snapshots {
		p := &snapshots[i]
		stop := &p.Facts.Stop
		pods[p.Pod.Name] = pod{
			name: p.Pod.Name, uid: p.Facts.UID, file: p.Owner.File, by: holder(p), definition: p.Pod,
			unit:     p.Owner.Unit != "",
			unowned:  p.Owner.File == "" && p.Owner.By == "" && p.Owner.Session == "",
			orphaned: p.Owner.Orphan,
			held:     heldBecause(p), snapshot: p,
			stopped: !stop.Requested.IsZero() && !stop.Delete && stop.ByUser, deleting: stop.Delete, completed: p.AtRest,
		}
	}
	return pods
}

// heldBecause returns why a pod is not supervised; empty: it is.
func heldBecause(p *supervisor.Snapshot) string {
	switch p.Status.Reason {
	case lifecycle.ReasonQuarantined, lifecycle.ReasonSuspected, lifecycle.ReasonNewerState:
		return cmp.Or(strings.TrimPrefix(p.Status.Message, supervisor.NotSupervised), string(p.Status.Reason))
	}
	return ""
}

// holder describes how a pod came to be.
func holder(p *supervisor.Snapshot) string {
	if p.Owner.By != "" {
		return "created by " + p.Owner.String()
	}
	return p.Status.Message // of a pod that is not supervised
}

// publish shows the files, and emits events for those whose state has changed. s.turn must be held.
func (s *Set) publish(files []File) {
	s.mu.Lock()
	before := s.files
	s.mu.Unlock()
	if slices.EqualFunc(before, files, same) {
		return
	}
	s.emit(files)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = files
	close(s.changed)
	s.changed = make(chan struct{})
}

func same(a, b File) bool {
	return a.Path == b.Path && a.Pod == b.Pod && a.Reason == b.Reason && text(a.Refused) == text(b.Refused) && reflect.DeepEqual(a.Problems, b.Problems)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
