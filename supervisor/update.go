package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

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
	l.emit(now, event.DefinitionChanged, "", event.Fields{"changes": describe(changes), "by": owner.By})
	switch {
	case again:
		l.fold(lifecycle.RestartRequested{By: owner.By, At: now}, now)
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
		l.events.At(l.facts, now).Shadowed(name, staged.Shadows[name])
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
