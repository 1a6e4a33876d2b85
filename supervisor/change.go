package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// ContainerTakenError reports that a pod already has a container of that name.
type ContainerTakenError struct{ Pod, Container string }

func (e *ContainerTakenError) Error() string {
	return fmt.Sprintf("pod %q already has a container %q", e.Pod, e.Container)
}

// ConditionUnknownError reports that a pod has no readiness gate for a condition.
type ConditionUnknownError struct {
	Pod  string
	Type lifecycle.ConditionType
}

func (e *ConditionUnknownError) Error() string {
	return fmt.Sprintf("pod %q has no readiness gate %q", e.Pod, e.Type)
}

// Reasons for which an ephemeral container is rejected, in a [*RefusedError].
var (
	errCompleted = errors.New("the pod has completed or is being stopped")
	errTooMany   = errors.New("the pod has the maximum number of ephemeral containers")
)

// Stop stops a pod. It returns when the request is saved and visible in [Supervisor.Pods]; it does not wait until the pod has stopped.
// Further calls can shorten the grace period and add Delete. A pod that has completed does not change, except by Delete. If the pod does
// not exist, the error is [ErrNotFound]. A pod with the state file of a later version can only be deleted without a grace period; otherwise
// the error is a [*NotSupervisedError]. After [ErrLeaving] the pod is unchanged. After the error of ctx it may be stopped.
func (s *Supervisor) Stop(ctx context.Context, name string, o StopOptions) error {
	s.mu.Lock()
	held := s.blocked[name]
	s.mu.Unlock()
	if held != nil {
		return s.stopHeld(ctx, held, o)
	}
	return s.change(ctx, "stop", name, o.UID, func(l *loop, now lifecycle.Instant) error { return l.stop(o, now) })
}

// AddEphemeral adds an ephemeral container to a pod. It returns when the container is saved and visible in [Supervisor.Pods]. The
// container starts independently of the other containers. An empty uid matches any pod of the name; by is the client, for people. The
// error is a [*ContainerTakenError] for a name in use. It is a [*RefusedError] if the admission policy forbids the container, or if the
// pod has completed or has the maximum number of ephemeral containers.
func (s *Supervisor) AddEphemeral(ctx context.Context, name, uid string, c *spec.Container, by string) error {
	return s.change(ctx, "change", name, uid, func(l *loop, now lifecycle.Instant) error { return l.addEphemeral(c, by, now) })
}

// SetCondition sets a condition that a readiness gate of the pod waits for. The error is a [*ConditionUnknownError] for any other
// condition. An empty uid matches any pod of the name; by is the client, for people.
func (s *Supervisor) SetCondition(ctx context.Context, name, uid string, t lifecycle.ConditionType, c lifecycle.SetCondition, by string) error {
	return s.change(ctx, "change", name, uid, func(l *loop, now lifecycle.Instant) error { return l.setCondition(t, c, by, now) })
}

// change changes the pod of a name, as [Supervisor.request] does. An empty uid matches any pod of the name.
func (s *Supervisor) change(ctx context.Context, verb, name, uid string, change func(*loop, lifecycle.Instant) error) error {
	s.mu.Lock()
	l, held := s.pods[name], s.blocked[name]
	s.mu.Unlock()
	if held != nil {
		return &NotSupervisedError{Pod: name, Why: held.why, Reason: held.snapshot.Status.Reason}
	}
	if l == nil || (uid != "" && l.uid != uid) {
		return fmt.Errorf("%s pod %q: %w", verb, name, ErrNotFound)
	}
	return s.request(ctx, verb, l, change)
}

func (l *loop) addEphemeral(c *spec.Container, by string, now lifecycle.Instant) error {
	before := len(l.facts.Ephemeral)
	switch _, taken := l.facts.Containers[c.Name]; {
	case taken, l.fullPod.Load().Container(c.Name) != nil:
		return &ContainerTakenError{l.pod.Name, c.Name}
	case lifecycle.Terminating(l.pod, l.facts):
		return refused(l.pod.Name, errCompleted)
	}
	if list := l.shared.policy.Load().CheckEphemeral(l.pod, c); len(list) > 0 {
		return &RefusedError{Pod: l.pod.Name, Refusals: list}
	}
	l.fold(lifecycle.EphemeralAdded{Container: *c, At: now}, now)
	if len(l.facts.Ephemeral) == before {
		return refused(l.pod.Name, errTooMany)
	}
	l.updateFullPod()
	l.emit(now, event.ContainerAdded, c.Name, event.Fields{"container": c.Name, "by": by})
	return nil
}

func (l *loop) setCondition(t lifecycle.ConditionType, c lifecycle.SetCondition, by string, now lifecycle.Instant) error {
	if !slices.ContainsFunc(l.pod.ReadinessGates, func(g spec.ReadinessGate) bool { return g.ConditionType == string(t) }) {
		return &ConditionUnknownError{l.pod.Name, t}
	}
	before := l.facts.Conditions[t]
	l.fold(lifecycle.ConditionSet{Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message, At: now}, now)
	if before.Status != c.Status {
		l.emit(now, event.ConditionChanged, "", event.Fields{
			"condition": string(t), "status": c.Status, "by": by, "reason": string(c.Reason), "message": c.Message,
		})
	}
	return nil
}
