package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
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
func (s *Supervisor) SetCondition(ctx context.Context, name, uid string, t lifecycle.ConditionType, c lifecycle.SetCondition,
	by string,
) error {
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
	if list := l.shared.checkEphemeral(l.pod, c); len(list) > 0 {
		return &RefusedError{Pod: l.pod.Name, Refusals: list}
	}
	l.fold(lifecycle.EphemeralAdded{Container: *c, At: now}, now)
	if len(l.facts.Ephemeral) == before {
		return refused(l.pod.Name, errTooMany)
	}
	l.updateFullPod()
	l.emit(now, api.EventContainerAdded, c.Name, event.Fields{"container": c.Name, "by": by})
	return nil
}

func (l *loop) setCondition(t lifecycle.ConditionType, c lifecycle.SetCondition, by string, now lifecycle.Instant) error {
	if !slices.ContainsFunc(l.pod.ReadinessGates, func(g spec.ReadinessGate) bool { return g.ConditionType == string(t) }) {
		return &ConditionUnknownError{l.pod.Name, t}
	}
	before := l.facts.Conditions[t]
	l.fold(lifecycle.ConditionSet{Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message, At: now}, now)
	if before.Status != c.Status {
		l.emit(now, api.EventConditionChanged, "", event.Fields{
			"condition": string(t), "status": c.Status, "by": by, "reason": string(c.Reason), "message": c.Message,
		})
	}
	return nil
}

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
		return s.change(ctx, "restart", name, uid, func(l *loop, now lifecycle.Instant) error {
			return l.restartContainer(container, by, now)
		})
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
	l.fold(lifecycle.RestartRequested{By: by, JobRun: l.nextRun(), At: now}, now)
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

// ReplaceError reports that a definition has changes that need a new pod.
type ReplaceError struct {
	Pod     string
	Changes []change.Change // those with the effect [change.ReplacePod]
}

func (e *ReplaceError) Error() string { return fmt.Sprintf("pod %q must be replaced", e.Pod) }

// Redefine changes the definition of a pod to one that was staged: labels, probes and policies in place; containers that were changed,
// added or removed are restarted, started or stopped alone; what belongs to the sandbox restarts the pod. It returns when the change is
// saved, with what has changed; nothing: the pod had this definition already. The error is a [*ReplaceError] if the pod must be replaced, a
// [*NotPossibleError] if the pod is being deleted or an image that the change needs was not staged, and a [*RefusedError] if other pods do
// not leave enough. A pod that was stopped stays stopped. A pod that has completed or failed runs again as a whole, unless everything
// changed in place and its containers stay completed. A container whose staged image is another one than it uses has a change too, as a
// change of its definition. An empty uid matches any pod of the name.
func (s *Supervisor) Redefine(ctx context.Context, uid string, pod *spec.Pod, staged Staged, owner state.Owner) ([]change.Change, error) {
	release, err := s.reserveChange(ctx, pod, staged.Images, false)
	if err != nil {
		return nil, err
	}
	defer release()
	var changes []change.Change
	err = s.change(ctx, "change", pod.Name, uid, func(l *loop, now lifecycle.Instant) (err error) {
		changes, err = l.redefine(pod, staged, owner, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// redefine changes the definition. The definition and the facts are saved with one write.
func (l *loop) redefine(pod *spec.Pod, staged Staged, owner state.Owner, now lifecycle.Instant) ([]change.Change, error) {
	if l.facts.Stop.Delete {
		return nil, l.notPossible("change", "", "it is being deleted")
	}
	from, to := l.pod, withEphemerals(pod, nil)
	metadataOnly := !slices.ContainsFunc(l.shared.between(from, to), ofSpec)
	changes := l.shared.changes(from, to, l.facts, staged.Images)
	if len(changes) == 0 {
		if to.Hash != from.Hash || owner.File != l.owner.File {
			l.setDefinition(to, owner, nil)
		}
		return nil, nil
	}
	if err := l.checkChange(to, changes); err != nil {
		return nil, err
	}
	e := lifecycle.DefinitionChanged{From: from, To: to, Images: map[string]lifecycle.Image{}, MetadataOnly: metadataOnly, At: now}
	for _, name := range affected(from, to, changes) {
		image, ok := staged.Images[name]
		if !ok {
			return nil, l.notPossible("change", name, "its image was not staged: the pod was changed in the meantime")
		}
		e.Images[name] = image
		if from.Container(name) != nil && l.restarts(name, changes) {
			e.Restarted = append(e.Restarted, name)
		}
	}
	if !e.Fits(l.facts) {
		return nil, l.notPossible("change", "", "too many containers that were removed are still stopping")
	}
	for name := range e.Images {
		l.effects.cancelPull(name)
	}
	again, terminating := startsAgain(l.facts, e), lifecycle.Terminating(from, l.facts)
	l.fold(e, now)
	l.setDefinition(to, owner, changes)
	l.effects.cancelRemovedHooks(to)
	l.emit(now, api.EventDefinitionChanged, "", event.Fields{"changes": describe(changes), "by": owner.By})
	switch {
	case again:
		l.fold(lifecycle.RestartRequested{By: owner.By, JobRun: l.nextRun(), At: now}, now)
	case change.Largest(changes) == change.RestartPod && !terminating:
		l.fold(lifecycle.RestartRequested{By: owner.By, Redefined: true, At: now}, now)
	}
	l.fold(lifecycle.TrialBegun{Trial: l.shared.trial(to, staged.RollsBack, now)}, now)
	l.shadowed(staged, e.Images, now)
	return changes, nil
}

// shadowed emits which of the staged images that containers use from now on differ from other images of their names.
func (l *loop) shadowed(staged Staged, used map[string]lifecycle.Image, now lifecycle.Instant) {
	for _, name := range slices.Sorted(maps.Keys(used)) {
		l.events.At(&l.facts, now).Shadowed(name, staged.Shadows[name])
	}
}

// checkChange returns why the pod cannot have a new definition.
func (l *loop) checkChange(to *spec.Pod, changes []change.Change) error {
	var replacing []change.Change
	for _, c := range changes {
		if c.Effect == change.ReplacePod {
			replacing = append(replacing, c)
		}
	}
	if len(replacing) > 0 {
		return &ReplaceError{Pod: l.name, Changes: replacing}
	}
	for i := range l.facts.Ephemeral {
		if name := l.facts.Ephemeral[i].Name; to.Container(name) != nil {
			return &ContainerTakenError{l.name, name}
		}
	}
	return nil
}

// setDefinition makes everything use the new definition from now on.
func (l *loop) setDefinition(to *spec.Pod, owner state.Owner, changes []change.Change) {
	l.pod, l.owner = to, owner
	l.updateFullPod()
	l.events.Redefine(to, byContainer(to, changes))
	l.dirty, l.redefined = true, true
}

// restarts reports whether changes restart a container now. An init container that has completed runs again when the pod starts again.
func (l *loop) restarts(container string, changes []change.Change) bool {
	for _, c := range changes {
		ofContainer := c.Container == container && (c.Effect == change.RestartContainer || c.Effect == change.NextRound)
		if c.Effect == change.RestartPod || ofContainer {
			return !lifecycle.InitPassed(l.pod, l.facts, container)
		}
	}
	return false
}

func (l *loop) notPossible(verb, container, why string) error {
	return &NotPossibleError{Verb: verb, Pod: l.name, Container: container, Why: why}
}
