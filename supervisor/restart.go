package supervisor

import (
	"context"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Start starts a pod again that was stopped or has completed, with the same UID and volumes. All containers run again, init containers
// too. A pod that is being stopped is started when it has stopped. A pod that runs is unchanged. The error is a [*RefusedError] if
// other pods use what it needs by now, and a [*NotPossibleError] if it is being deleted. An empty uid matches any pod of the name; by is
// the client, for people.
func (s *Supervisor) Start(ctx context.Context, name, uid, by string) error {
	return s.startAgain(ctx, "start", name, uid, func(l *loop, now lifecycle.Instant) error {
		if !l.facts.Stop.Delete && !lifecycle.Terminating(l.pod, l.facts) {
			return nil
		}
		return l.restart("start", by, now)
	})
}

// Restart stops the containers of a pod with their hooks and grace periods, and starts the pod again, with the same UID and volumes. A pod
// that was stopped or has completed is started. With a container it restarts only that one, whatever its restart policy; the error is a
// [*ContainerNotFoundError] if the pod does not have it, and a [*NotPossibleError] for an init container that has completed, for an
// ephemeral container and if the pod is not running. Otherwise the errors are those of [Supervisor.Start].
func (s *Supervisor) Restart(ctx context.Context, name, uid, container, by string) error {
	if container != "" {
		return s.change(ctx, "restart", name, uid, func(l *loop, now lifecycle.Instant) error { return l.restartContainer(container, by, now) })
	}
	return s.startAgain(ctx, "restart", name, uid, func(l *loop, now lifecycle.Instant) error { return l.restart("restart", by, now) })
}

// startAgain requests a start of a pod. A pod that has terminated must be admitted again: other pods may use its host ports.
func (s *Supervisor) startAgain(ctx context.Context, verb, name, uid string, change func(*loop, lifecycle.Instant) error) error {
	if p, exists := s.Pod(name); exists && lifecycle.Terminating(p.Pod, p.Facts) && !p.Facts.Stop.Delete {
		release, err := s.reserveChange(ctx, withEphemerals(p.Pod, nil), nil, true)
		if err != nil {
			return err
		}
		defer release()
	}
	return s.change(ctx, verb, name, uid, change)
}

func (l *loop) restart(verb, by string, now lifecycle.Instant) error {
	if l.facts.Stop.Delete {
		return l.notPossible(verb, "", "it is being deleted")
	}
	l.fold(lifecycle.RestartRequested{By: by, At: now}, now)
	l.tryAgain(now)
	return nil
}

func (l *loop) restartContainer(container, by string, now lifecycle.Instant) error {
	c := l.fullPod.Load().Container(container)
	ephemeral := slices.ContainsFunc(l.facts.Ephemeral, func(c spec.Container) bool { return c.Name == container })
	switch {
	case c == nil:
		return &ContainerNotFoundError{l.name, container}
	case l.facts.Stop.Delete:
		return l.notPossible("restart", container, "the pod is being deleted")
	case !l.facts.Stop.Requested.IsZero():
		return l.notPossible("restart", container, "the pod was stopped, start the pod")
	case lifecycle.Terminating(l.pod, l.facts):
		return l.notPossible("restart", container, "the pod has completed, restart the pod")
	case ephemeral:
		return l.notPossible("restart", container, "ephemeral containers cannot be restarted")
	case lifecycle.InitPassed(l.pod, l.facts, container):
		return l.notPossible("restart", container, "the init container has completed, restart the pod to run it again")
	}
	l.fold(lifecycle.ContainerRestartRequested{Container: container, By: by, At: now}, now)
	l.tryAgain(now)
	return nil
}

// tryAgain begins a trial of what runs already.
func (l *loop) tryAgain(now lifecycle.Instant) {
	t := &l.facts.Trial
	l.fold(lifecycle.TrialBegun{Trial: l.shared.trial(l.pod, t.RollsBack && t.Passed.IsZero(), now)}, now)
}

// Keep ends that a pod is held whose definition has failed, see [Staged]: no earlier definition replaces it.
func (s *Supervisor) Keep(ctx context.Context, name, uid string) error {
	return s.change(ctx, "keep", name, uid, func(l *loop, now lifecycle.Instant) error {
		if l.facts.Trial.Holds() { // otherwise it has another definition by now
			l.fold(lifecycle.TrialKept{At: now}, now)
		}
		return nil
	})
}
