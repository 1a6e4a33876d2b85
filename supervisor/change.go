package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// ContainerTakenError says that a pod has a container of that name already.
type ContainerTakenError struct{ Pod, Container string }

func (e *ContainerTakenError) Error() string {
	return fmt.Sprintf("pod %q has a container %q", e.Pod, e.Container)
}

// ConditionUnknownError says that no readiness gate of a pod waits for a condition.
type ConditionUnknownError struct {
	Pod  string
	Type lifecycle.ConditionType
}

func (e *ConditionUnknownError) Error() string {
	return fmt.Sprintf("pod %q has no readiness gate %q", e.Pod, e.Type)
}

// Errors for which a container is not added, in a [*RefusedError].
var (
	errEnding  = errors.New("it has ended, or is about to")
	errTooMany = errors.New("it has as many ephemeral containers as a pod can have")
)

// AddEphemeral adds an ephemeral container to the pod of a name and, if that is set, of a UID, and returns when readers see
// it; it starts at once, beside whatever the pod is at. A name that is taken is a [*ContainerTakenError], and a pod that
// can have no more, or has ended, or a container that the policy does not allow, a [*RefusedError]. by says who asks, for a person.
func (s *Supervisor) AddEphemeral(ctx context.Context, name, uid string, c *spec.Container, by string) error {
	return s.change(ctx, "change", name, uid, func(l *loop, now lifecycle.Instant) error {
		before := len(l.facts.Ephemeral)
		switch _, known := l.facts.Containers[c.Name]; {
		case known, l.whole.Load().Container(c.Name) != nil:
			return &ContainerTakenError{name, c.Name}
		case lifecycle.Terminating(l.pod, l.facts):
			return refused(name, errEnding)
		}
		if list := l.shared.policy.CheckEphemeral(l.pod, c); len(list) > 0 {
			return &RefusedError{Pod: name, Refusals: list}
		}
		l.fold(lifecycle.EphemeralAdded{Container: *c, At: now}, now)
		if len(l.facts.Ephemeral) == before {
			return refused(name, errTooMany)
		}
		l.define()
		l.tell(now, ContainerAdded, c.Name, fields{"container": c.Name, "by": by})
		return nil
	})
}

// SetCondition sets a condition that a readiness gate of the pod waits for; any other is a [*ConditionUnknownError]. The UID,
// if it is set, says which pod of the name. by says who asks, for a person.
func (s *Supervisor) SetCondition(ctx context.Context, name, uid string, t lifecycle.ConditionType, c lifecycle.SetCondition, by string) error {
	return s.change(ctx, "change", name, uid, func(l *loop, now lifecycle.Instant) error {
		if !slices.ContainsFunc(l.pod.ReadinessGates, func(g spec.ReadinessGate) bool { return g.ConditionType == string(t) }) {
			return &ConditionUnknownError{name, t}
		}
		before := l.facts.Conditions[t]
		l.fold(lifecycle.ConditionSet{Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message, At: now}, now)
		if before.Status != c.Status {
			defer func(was told) { l.newest[""] = was }(l.newest[""]) // the pod does nothing because of it
			l.tell(now, ConditionChanged, "", fields{
				"condition": string(t), "status": c.Status, "by": by, "reason": string(c.Reason), "message": c.Message,
			})
		}
		return nil
	})
}

// change lets the loop of a pod do something that may be refused, and returns when it is kept, so that what was told to be
// done outlives the supervisor; or after 10 s, where the disk hangs, and also where it fails: that is an event of its own. verb is
// for the errors.
func (s *Supervisor) change(ctx context.Context, verb, name, uid string, do func(*loop, lifecycle.Instant) error) error {
	s.mu.Lock()
	l := s.pods[name]
	s.mu.Unlock()
	if l == nil || (uid != "" && l.uid != uid) {
		return fmt.Errorf("%s pod %q: %w", verb, name, ErrNotFound)
	}
	var failed error
	var saved *state.Write
	heard, err := l.demand(ctx, func(now lifecycle.Instant) {
		if failed = do(l, now); failed == nil {
			saved = l.save(now)
			l.observe(now) // whoever asked sees it from now on
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s pod %q: %w", verb, name, err)
	case heard:
		saved.Wait(ctx, startWait)
		return failed
	case s.ctx.Err() != nil:
		return ErrLeaving
	}
	return fmt.Errorf("%s pod %q: %w", verb, name, ErrNotFound)
}

// withoutEphemerals is a pod as its file has it: the facts hold the ephemeral containers.
func withoutEphemerals(pod *spec.Pod) *spec.Pod {
	if len(pod.EphemeralContainers) == 0 {
		return pod
	}
	own := *pod
	own.EphemeralContainers = nil
	return &own
}

// define makes the ephemeral containers of the facts known to all but the decisions.
func (l *loop) define() {
	whole := *l.pod
	whole.EphemeralContainers = l.facts.Ephemeral
	l.whole.Store(&whole)
}
