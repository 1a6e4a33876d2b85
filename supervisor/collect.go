package supervisor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// collectPace is the least time between two looks at all pods.
const collectPace = time.Second

// SetFinishedPods changes the limits.
func (s *Supervisor) SetFinishedPods(limits FinishedPods) {
	s.mu.Lock()
	s.finished = limits
	s.mu.Unlock()
	s.notify()
}

// collect collects finished pods until ctx ends.
func (s *Supervisor) collect(ctx context.Context) {
	for ctx.Err() == nil {
		changed := s.Changed()
		due, wake := s.collectable()
		for _, p := range due {
			s.collectPod(ctx, p)
		}
		if len(due) > 0 && wake < 0 {
			wake = maxSleep // a request may have failed
		}
		s.dropRecords(ctx)
		if !pause(ctx, collectPace, nil) {
			return
		}
		if !pause(ctx, wake, changed) {
			return
		}
	}
}

// pause waits for a duration, or until changed is closed. A negative duration has no end. It returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-changed:
	case <-ctx.Done():
		return false
	}
	return true
}

// finishedPod is a pod that has finished.
type finishedPod struct {
	Snapshot
	at lifecycle.Instant
}

// finishedPods returns the supervised pods that have finished, the oldest first, except those whose client is connected and may still read
// their logs.
func (s *Supervisor) finishedPods() []finishedPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []finishedPod
	for _, l := range s.pods {
		if l == nil || s.sessions[l.snapshot.Load().Owner.Session] != nil {
			continue
		}
		p := *l.snapshot.Load()
		if at := lifecycle.Finished(p.Pod, p.Facts); p.AtRest && !at.IsZero() {
			list = append(list, finishedPod{p, at})
		}
	}
	order.Sort(list, func(a, b finishedPod) int {
		return cmp.Or(cmp.Compare(a.at.Mono, b.at.Mono), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return list
}

// Finished is a pod that has finished, and has left containers, volumes or logs.
type Finished struct {
	Snapshot
	For time.Duration // since it finished, not counting the time for which the host is off
}

// Finished returns the pods that have finished and were not collected, the oldest first. It omits those whose clients may still read their
// logs.
func (s *Supervisor) Finished() []Finished {
	now := s.shared.now()
	var list []Finished
	for _, p := range s.finishedPods() {
		if p.Facts.Collection.Requested.IsZero() {
			list = append(list, Finished{p.Snapshot, now.Sub(p.at)})
		}
	}
	return list
}

// CollectFinished removes what a finished pod has left, before a limit of [FinishedPods] is exceeded, and waits until that is done. It
// returns the error of an attempt that fails; the removal is repeated. A pod that was started again or deleted meanwhile is left alone.
func (s *Supervisor) CollectFinished(ctx context.Context, p *Finished) error {
	s.collectPod(ctx, finishedPod{Snapshot: p.Snapshot})
	for {
		changed := s.Changed()
		list := s.Pods()
		at := slices.IndexFunc(list, func(other Snapshot) bool { return other.Facts.UID == p.Facts.UID })
		if at < 0 || !list[at].AtRest || list[at].Facts.Collected() {
			return nil
		}
		if c := list[at].condition(RemovalFailed); !list[at].Facts.Collection.Removal.Failed.IsZero() && c.Message != "" {
			return errors.New(c.Message)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// collectable returns the pods that exceed a limit, and how long to wait for the next one; negative: until a pod changes.
func (s *Supervisor) collectable() (due []finishedPod, wake time.Duration) {
	s.mu.Lock()
	limits, schedules := s.finished, s.schedules
	s.mu.Unlock()
	// The limits of the host do not apply to the runs of a schedule.
	isRun := func(p finishedPod) bool {
		return p.Owner.Schedule != "" && (schedules == nil || slices.Contains(schedules, p.Owner.Schedule))
	}
	list := slices.DeleteFunc(s.finishedPods(), func(p finishedPod) bool { return !p.Facts.Collection.Requested.IsZero() })
	surplus := 0
	if limits.Max > 0 {
		surplus = len(list) - limits.Max
		for _, p := range list {
			if isRun(p) {
				surplus--
			}
		}
	}
	now := s.shared.now()
	wake = -1
	for _, p := range list {
		ttl, limited, tooMany := limits.TTL, limits.TTL > 0 && !isRun(p), false
		since := p.at
		if own := p.Pod.TTLSecondsAfterFinished; own != nil {
			ttl, limited = own.Duration(), true
			if end := p.Facts.Job.Ended; p.Pod.Job != nil { // it counts from the end of the Job
				limited = !end.IsZero()
				if since.Before(end) {
					since = end
				}
			}
		}
		if surplus > 0 && !isRun(p) {
			tooMany, surplus = true, surplus-1
		}
		left := ttl - now.Sub(since)
		switch {
		case tooMany || limited && left <= 0:
			due = append(due, p)
		case limited && (wake < 0 || left < wake):
			wake = min(left, maxSleep) // timers stop while the host is suspended
		}
	}
	return due, wake
}

// collectPod requests the collection of a pod, unless it was started again.
func (s *Supervisor) collectPod(ctx context.Context, p finishedPod) {
	err := s.change(ctx, "collect", p.Pod.Name, p.Facts.UID, func(l *loop, now lifecycle.Instant) error {
		if at := lifecycle.Finished(l.pod, l.facts); !at.IsZero() {
			l.fold(lifecycle.CollectionRequested{At: now}, now)
		}
		return nil
	})
	s.logCollect(ctx, p.Pod.Name, err)
}

// dropRecords deletes the oldest collected pods without a file if there are too many.
func (s *Supervisor) dropRecords(ctx context.Context) {
	list := slices.DeleteFunc(s.finishedPods(), func(p finishedPod) bool { return !p.Facts.Collected() || p.Owner.File != "" })
	for _, p := range list[:max(len(list)-s.maxCollected, 0)] {
		err := s.Stop(ctx, p.Pod.Name, StopOptions{UID: p.Facts.UID, Delete: true, By: "the supervisor (too many finished pods)"})
		s.logCollect(ctx, p.Pod.Name, err)
	}
}

func (s *Supervisor) logCollect(ctx context.Context, pod string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrLeaving) {
		s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not collect a finished pod", slog.String("pod", pod), slog.Any("error", err))
	}
}
