package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// NotPossibleError reports that the state of a pod or of a container does not allow a request.
type NotPossibleError struct {
	Verb, Pod string
	Container string // empty: the request is for the pod
	Why       string
}

func (e *NotPossibleError) Error() string {
	if e.Container != "" {
		return fmt.Sprintf("%s container %q of pod %q: %s", e.Verb, e.Container, e.Pod, e.Why)
	}
	return fmt.Sprintf("%s pod %q: %s", e.Verb, e.Pod, e.Why)
}

// ContainerNotFoundError reports that a pod has no container of that name.
type ContainerNotFoundError struct{ Pod, Container string }

func (e *ContainerNotFoundError) Error() string {
	return fmt.Sprintf("pod %q has no container %q", e.Pod, e.Container)
}

// request sends a [changeRequest] to the loop of a pod. It returns when the change is saved, so that it survives the supervisor. It waits
// for the disk for [saveTimeout] at most; that writing failed is no error, but an event. The verb is for error messages.
func (s *Supervisor) request(ctx context.Context, verb string, l *loop, change func(*loop, lifecycle.Instant) error) error {
	answer, handled, err := l.mailbox.request(ctx, l.ended, func(now lifecycle.Instant) error { return change(l, now) })
	switch {
	case err != nil:
		return fmt.Errorf("%s pod %q: %w", verb, l.name, err)
	case handled:
		answer.saved.Wait(ctx, saveTimeout)
		if errors.Is(answer.err, errPanicked) {
			return fmt.Errorf("%s pod %q: %w", verb, l.name, answer.err)
		}
		return answer.err
	case s.ctx.Err() != nil:
		return ErrLeaving
	}
	return fmt.Errorf("%s pod %q: %w", verb, l.name, ErrNotFound)
}

func (l *loop) stop(o StopOptions, now lifecycle.Instant) error {
	if l.status.Phase.Terminal() && !o.Delete {
		return nil // it has completed, and not because of this request
	}
	l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(l.pod, o.Grace), Delete: o.Delete, By: o.By, At: now}, now)
	return nil
}
