package podfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

// coalesce is the time within which changes of pods are looked at together.
const coalesce = 50 * time.Millisecond

// Run follows the directory until ctx ends. The pods keep running. It returns when everything that it has started has returned,
// apart from accesses of a file system that does not respond.
//
// A change is noticed by inotify. Files that links in the directory point to, and links further up in its path, are looked at once a
// minute; so is everything if inotify is not available, more often.
func (s *Set) Run(ctx context.Context) error {
	s.sweep(ctx)
	end := s.generations.images.start(ctx)
	defer func() {
		s.wait()
		s.forgetDeleted(ctx)
		end()
	}()
	notifier, err := watch.NewNotifier(s.dir)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "changes of the pods directory are found at intervals only", slog.Any("error", err))
		return s.follow(ctx, nil)
	}
	following, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		notifier.Run(following)
	}()
	err = s.follow(ctx, notifier)
	stop()
	<-done
	stopping := context.WithoutCancel(ctx)
	if _, closeErr := disk.Call(stopping, s.notifying, func() (struct{}, error) { return struct{}{}, notifier.Close() }); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("stop watching pods directory: %w", closeErr))
	}
	return err
}

// sweep removes the temporary files of a daemon that was killed.
func (s *Set) sweep(ctx context.Context) {
	if s.turn.LockContext(ctx) != nil { // a client may apply a file already
		return
	}
	defer s.turn.Unlock()
	if _, err := disk.Call(ctx, s.disk, func() (struct{}, error) { return struct{}{}, atomicfile.Sweep(s.dir) }); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		s.log.LogAttrs(ctx, slog.LevelInfo, "could not remove temporary files from the pods directory", slog.Any("error", err))
	}
}

// follow compares the directory with the pods whenever one of them changes. The notifier may be nil.
func (s *Set) follow(ctx context.Context, notifier *watch.Notifier) error {
	var notified <-chan struct{}
	if notifier != nil {
		notified = notifier.Changed()
	}
	list := true
	timer := time.NewTimer(0)
	defer timer.Stop()
	var listed time.Time
	interval := s.times.unnotified
	for {
		pods := s.pods.Changed()
		var removed map[string]bool
		if list {
			listed = time.Now()
			interval = s.arm(ctx, notifier)
			if notifier != nil {
				removed = notifier.Removed()
			}
		}
		again := s.pass(ctx, list, removed)
		due := listed.Add(interval)
		if !again.IsZero() && again.Before(due) {
			due = again
		}
		timer.Reset(max(0, time.Until(due)))
		list = true
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.kick:
		case <-notified:
			s.untilQuiet(ctx, notified)
		case <-pods:
			list = s.within(ctx, coalesce, notified)
		}
	}
}

// pass looks at the directory and the pods, decides, and carries the decision out. It lists the directory if list is set. It returns when
// the next pass is due without a change; zero: never.
func (s *Set) pass(ctx context.Context, list bool, removed map[string]bool) time.Time {
	if s.turn.LockContext(ctx) != nil {
		return time.Time{}
	}
	defer s.turn.Unlock()
	if s.look(ctx, list, removed) != nil && ctx.Err() != nil {
		return time.Time{}
	}
	if err := s.load(ctx); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "generations of the pods cannot be read, pod files are not carried out", slog.Any("error", err))
	}
	d := s.facts.plan()
	for len(d.records) > 0 {
		s.record(ctx, d.records...)
		d = s.facts.plan()
	}
	d.lookAgain(s.generations.save(ctx))
	s.publish(&d) // who sees what a step changes finds why
	s.carryOut(ctx, &d)
	s.carriedOut()
	return d.again
}

// arm makes the notifier, which may be nil, notice changes from now on. It returns the time until the next listing without a notification.
func (s *Set) arm(ctx context.Context, notifier *watch.Notifier) time.Duration {
	if notifier == nil {
		return s.times.unnotified
	}
	_, err := disk.Call(ctx, s.notifying, func() (struct{}, error) { return struct{}{}, notifier.Arm() })
	if err != nil && ctx.Err() == nil && text(err) != s.armError {
		s.log.LogAttrs(ctx, slog.LevelWarn, "changes of the pods directory are found at intervals only", slog.Any("error", err))
	}
	s.armError = text(err)
	if err != nil {
		return s.times.unnotified
	}
	return s.times.relist
}

// within waits. It reports whether the directory has changed meanwhile.
func (s *Set) within(ctx context.Context, d time.Duration, notified <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-s.kick:
	case <-notified:
		s.untilQuiet(ctx, notified)
	case <-ctx.Done():
	}
	return true
}

// untilQuiet waits until the directory has not changed for a short time, or has changed for long.
func (s *Set) untilQuiet(ctx context.Context, notified <-chan struct{}) {
	burst := time.NewTimer(s.times.burst)
	defer burst.Stop()
	for {
		quiet := time.NewTimer(s.times.quiet)
		select {
		case <-notified:
			quiet.Stop()
			continue
		case <-quiet.C:
		case <-burst.C:
		case <-s.kick: // such as a file that a client has applied
		case <-ctx.Done():
		}
		quiet.Stop()
		return
	}
}

// wait cancels all workers, and waits until they have ended.
func (s *Set) wait() {
	s.turn.Lock()
	for _, w := range s.workers {
		w.cancel()
	}
	s.turn.Unlock()
	s.running.Wait()
}

// forgetDeleted removes the generations of pods that were deleted since the last comparison.
func (s *Set) forgetDeleted(ctx context.Context) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.facts.pods, s.facts.working = podsOf(s.pods.Pods()), nil
	s.forgetGenerations()
	s.generations.save(ctx)
}

// CarriedOut returns a channel that is closed when the pods of the first listing of the directory were added, apart from those that failed.
// A daemon that has started then knows them.
func (s *Set) CarriedOut() <-chan struct{} { return s.first }

// carriedOut closes the channel if no pod is being added, and no file may be half-written. s.turn must be held.
func (s *Set) carriedOut() {
	for _, w := range s.workers {
		if w.step.kind == add {
			return
		}
	}
	if s.facts.unsettled() {
		return
	}
	select {
	case <-s.first:
	default:
		close(s.first)
	}
}

// lock is a mutex that can be awaited with a context.
type lock chan struct{}

// Lock locks. The lock is held for one listing and one change of files at most.
func (l lock) Lock() { l <- struct{}{} }

// LockContext locks, unless ctx ends first.
func (l lock) LockContext(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unlock unlocks.
func (l lock) Unlock() { <-l }
