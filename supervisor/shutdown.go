package supervisor

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// shutdownMargin is how long [Supervisor.ShutDown] waits after the period for containers that were killed when it was over.
const shutdownMargin = 5 * time.Second

// ShutDown stops all pods for the shutdown of the host (by is [lifecycle.ByShutdown]) or of the daemon ([lifecycle.ByDaemonStop]), with
// their hooks, in reverse order of their start: each after those that started later have stopped. It returns when all have stopped, or some
// seconds after the period, in which every container is killed that has not stopped. A pod holds up the next ones for its share of the
// remaining time at most, also if its loop does not respond or the disk hangs.
// The next supervisor starts the pods again.
//
// The caller must not add or start pods any more. Call [Supervisor.Leave] afterwards.
func (s *Supervisor) ShutDown(ctx context.Context, period time.Duration, by string) {
	ctx, cancel := context.WithTimeout(ctx, period+shutdownMargin)
	defer cancel()
	end := time.Now().Add(period)
	idle, order := shutdownOrder(s.Pods())
	var told sync.WaitGroup
	defer told.Wait() // for the disk
	tell := func(pods []Snapshot) {
		for i := range pods {
			told.Go(func() { s.shutDownPod(ctx, &pods[i], end, by) })
		}
	}
	tell(idle) // nothing of them starts while others stop
	s.awaitStopped(ctx, period/time.Duration(len(order)+1), idle)
	for i := range order {
		tell(order[i : i+1])
		s.awaitStopped(ctx, time.Until(end)/time.Duration(len(order)-i), order[i:i+1])
	}
	s.awaitStopped(ctx, period+shutdownMargin, slices.Concat(idle, order))
}

// shutdownOrder returns the pods without a sandbox, and the others in reverse order of the start of their sandboxes.
func shutdownOrder(pods []Snapshot) (idle, used []Snapshot) {
	for _, p := range pods {
		switch {
		case p.AtRest || p.Status.Phase.Terminal():
		case p.Facts.Sandbox.Ready.IsZero():
			idle = append(idle, p)
		default:
			used = append(used, p)
		}
	}
	order.Sort(used, func(a, b Snapshot) int { return cmp.Compare(b.Facts.Sandbox.Ready.Mono, a.Facts.Sandbox.Ready.Mono) })
	return idle, used
}

// shutDownPod stops a pod within its grace period, or within what is left until the end. It waits for the loop of the pod and for the disk.
func (s *Supervisor) shutDownPod(ctx context.Context, p *Snapshot, end time.Time, by string) {
	err := s.change(ctx, "stop", p.Pod.Name, p.Facts.UID, func(l *loop, now lifecycle.Instant) error {
		if !lifecycle.Terminating(l.pod, l.facts) || !l.facts.Stop.Requested.IsZero() {
			grace := min(lifecycle.EffectiveGrace(p.Pod, nil).Period, max(time.Until(end), 0))
			l.fold(lifecycle.HostShutdown{Grace: grace, By: by, At: now}, now)
		}
		return nil
	})
	if err != nil {
		s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not stop a pod for a shutdown", slog.String("pod", p.Pod.Name),
			slog.Any("error", err))
	}
}

// awaitStopped waits until the pods have stopped.
func (s *Supervisor) awaitStopped(ctx context.Context, limit time.Duration, pods []Snapshot) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		changed := s.Changed()
		if !slices.ContainsFunc(pods, func(p Snapshot) bool {
			now, exists := s.Pod(p.Pod.Name)
			return exists && now.Facts.UID == p.Facts.UID && !now.AtRest
		}) {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
