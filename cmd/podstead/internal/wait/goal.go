package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
)

// Goal is a pod of which a command has requested a definition, a start or a restart.
type Goal struct {
	Pod string
	// SpecHash is the hash of the definition that the pod must have; empty: any.
	SpecHash string
	// Created reports that the pod is created by the request: Before, if there is one, is being deleted.
	Created bool
	// Changed reports that the request changes the pod, possibly only to other images: the outcome of an earlier request does not count.
	Changed bool
	// Before is the pod before the request; nil: it did not exist.
	Before *api.Pod
	// Restarted reports that the request starts a pod that was at rest.
	Restarted bool
	// Started reports that the request is complete when all containers have started, or for a changed pod, of which not all containers
	// may start again, when it is ready. Others may wait for the pod, so when it fails no other one is awaited.
	Started bool

	reached string // UID of the pod that has had what was requested; empty: none yet
}

// Ready waits until what was requested of each pod is complete, see [complete] and [Goal.Started], or has failed: it was refused, replaced
// or rolled back, a container has failed, or the pod is stopped. It returns an error for each of the latter, by name of the pod. The
// function seen is called with each change of a pod that is awaited. When the context ends, Ready returns the pods that are not complete
// with the error of the context.
func Ready(ctx context.Context, d Daemon, goals []Goal, seen func(*api.Pod)) (map[string]error, error) {
	failed := map[string]error{}
	waiting := map[string]*Goal{}
	for _, g := range goals {
		waiting[g.Pod] = &g
	}
	if len(waiting) == 0 {
		return failed, nil
	}
	watches := 0
	changed := func(change *api.PodChange) bool {
		g, awaited := waiting[change.Object.Metadata.Name]
		if !awaited || change.Type == api.Deleted && g.reached != change.Object.Metadata.UID {
			return false
		}
		seen(&change.Object)
		done, err := g.judge(change, watches > 1)
		if err != nil {
			failed[g.Pod] = err
		}
		if done || err != nil {
			delete(waiting, g.Pod)
		}
		return len(waiting) == 0 || g.Started && err != nil
	}
	err := Until(ctx, d, func() func(*api.PodChange) bool {
		watches++
		return changed
	})
	if err != nil && ctx.Err() != nil { // the end of the context is a result, other errors are not
		for name := range waiting {
			failed[name] = context.Cause(ctx)
		}
		return failed, nil
	}
	return failed, err
}

// judge reports whether a pod has reached the goal. An error reports that it cannot. After the connection to the daemon was lost, a request
// of newer images may be lost, too.
func (g *Goal) judge(change *api.PodChange, reconnected bool) (bool, error) {
	p := &change.Object
	has := g.SpecHash == "" || p.Spec.Hash == g.SpecHash
	other := reverted(g.Before, p, api.ReasonRolledBack, api.ReasonRolloutUndone)
	switch refused := condition(p, api.FileAccepted); {
	case other != nil:
		return false, other
	case change.Type == api.Deleted:
		return false, errors.New("the pod was deleted in the meantime")
	case p.Metadata.UID == "":
		return false, fmt.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
	case g.Created && g.Before != nil && g.Before.Metadata.UID == p.Metadata.UID:
		return false, nil
	case !has && refused.Status == "False" && (refused.Reason != api.ReasonUpdatePending || g.Started && cannotPull(refused)):
		return false, fmt.Errorf("%s: %s", refused.Reason, refused.Message)
	case !has && (g.reached != "" || g.Before == nil || g.Before.Spec.Hash != p.Spec.Hash):
		return false, errors.New("the pod was changed to another definition in the meantime")
	case g.reached != "" && g.reached != p.Metadata.UID:
		return false, errors.New("the pod was replaced in the meantime")
	case !p.Status.StoppedAt.IsZero():
		return false, fmt.Errorf("the pod is stopped: start it with podstead start %s", g.Pod)
	case !has, p.Metadata.DeletionTimestamp != nil && !p.Status.AtRest:
		return false, nil
	case g.outdated(p) && reconnected && refused.Reason != api.ReasonUpdatePending:
		return false, errors.New("the daemon was restarted before the pod was changed: apply the file again")
	case g.outdated(p):
		return false, nil
	}
	g.reached = p.Metadata.UID
	if p.Status.Outcome.State == api.RolloutFailed {
		return false, errors.New(p.Status.Outcome.Message)
	}
	if complete(p) || !g.Started {
		return complete(p), nil
	}
	return g.started(p)
}

// cannotStart are the reasons of containers whose start has failed. The daemon tries it again.
var cannotStart = []api.Reason{
	api.ReasonErrImagePull, api.ReasonImagePullBackOff, api.ReasonErrImageNeverPull, api.ReasonInvalidImageName,
	api.ReasonCreateContainerError, api.ReasonCreateConfigError, api.ReasonDeviceMissing, api.ReasonRunContainerError,
}

// started reports whether all containers of a pod have started since the request, or the pod has terminated. The error is that of a
// container whose start has failed since.
func (g *Goal) started(p *api.Pod) (bool, error) {
	var before []api.ContainerStatus
	if g.Before != nil && g.Before.Metadata.UID == p.Metadata.UID {
		before = allStatuses(g.Before)
	}
	for _, c := range allStatuses(p) {
		if w := c.State.Waiting; w != nil && slices.Contains(cannotStart, w.Reason) && !hasWaited(before, c.Name, w) {
			return false, fmt.Errorf("container %s: %s: %s", c.Name, w.Reason, w.Message)
		}
	}
	if g.Changed { // until it is ready
		for _, t := range []api.ConditionType{api.PodResizeInProgress, api.PodResizePending} {
			if why := condition(p, t).Message; why != "" {
				return false, errors.New(cmp.Or(Resizing(p), "the resize of the pod is not complete: "+why))
			}
		}
		return false, nil
	}
	if p.Status.Phase.Terminal() && !g.Restarted {
		return true, nil
	}
	hasStarted := func(c api.ContainerStatus) bool {
		if g.Restarted && slices.ContainsFunc(before, func(b api.ContainerStatus) bool { return b.ContainerID == c.ContainerID }) {
			return false
		}
		return c.State.Running != nil || c.State.Terminated != nil || c.LastState.Terminated != nil
	}
	waits := slices.ContainsFunc(p.Status.ContainerStatuses, func(c api.ContainerStatus) bool { return !hasStarted(c) })
	return len(p.Status.ContainerStatuses) > 0 && !waits, nil
}

func allStatuses(p *api.Pod) []api.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// hasWaited reports whether a container has waited with the same failure before the request, so that it has not been tried again since.
func hasWaited(before []api.ContainerStatus, name string, w *api.Waiting) bool {
	return slices.ContainsFunc(before, func(b api.ContainerStatus) bool {
		return b.Name == name && b.State.Waiting != nil && *b.State.Waiting == *w
	})
}

// cannotPull reports whether a change waits because an image cannot be pulled.
func cannotPull(refused api.Condition) bool {
	return refused.Reason == api.ReasonUpdatePending && slices.ContainsFunc(cannotStart, func(r api.Reason) bool {
		return strings.Contains(refused.Message, ": "+string(r)+": ")
	})
}

// outdated reports whether the newest request for a pod is the one before the goal's. A daemon of an earlier version does not tell.
func (g *Goal) outdated(p *api.Pod) bool {
	return (g.Changed || g.Restarted) && g.Before != nil && g.Before.Metadata.UID == p.Metadata.UID && p.Status.Outcome.State != "" &&
		g.Before.Status.Outcome.Request == p.Status.Outcome.Request
}

// reverted returns why another generation of a pod runs in place of its file for one of the reasons, or is about to, that did not when the
// pod was seen before; nil: there is none. Before is nil if the pod did not exist.
func reverted(before, p *api.Pod, reasons ...api.Reason) error {
	c := condition(p, api.FileAccepted)
	if !slices.Contains(reasons, c.Reason) || before != nil && condition(before, c.Type).Message == c.Message {
		return nil
	}
	return fmt.Errorf("%s: %s", c.Reason, c.Message)
}

// complete reports whether the newest request for a pod is complete: the pod is ready and has stayed so for its minimum ready time without
// a container that has failed, or it has succeeded. The daemon decides that. One of an earlier version does not: the pod is ready, or has
// succeeded.
func complete(p *api.Pod) bool {
	if p.Status.Outcome.State == "" {
		return p.Status.Phase == api.PhaseSucceeded || condition(p, api.PodReady).Status == "True"
	}
	return p.Status.Outcome.State == api.RolloutComplete
}

// Settling reports whether a pod is ready, but has not stayed so for its minimum ready time since the newest request.
func Settling(p *api.Pod) bool { return p.Status.Outcome.Settling() }

// Resizing describes the resize that a pod, which is ready, has not completed; empty: there is none.
func Resizing(p *api.Pod) string {
	resizing := func(c api.Condition) bool { return c.Type == api.PodResizeInProgress || c.Type == api.PodResizePending }
	if slices.ContainsFunc(p.Status.Conditions, resizing) && condition(p, api.PodReady).Status == "True" && !complete(p) {
		return p.Status.Outcome.Message
	}
	return ""
}

// condition returns the condition of a type, or the zero condition.
func condition(p *api.Pod, t api.ConditionType) api.Condition {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return api.Condition{}
}

// Stopped waits until no container of the pods runs, or they are deleted. The pods are given as UID to name. The function stopped is called
// with each, and with the error if its state could not be saved. What remains of such a pod may not be removable either, so only its
// containers are awaited.
func Stopped(ctx context.Context, d Daemon, pods map[string]string, stopped func(name, unsaved string)) error {
	return await(ctx, d, pods, stopped, func(p *api.Pod) (string, bool) {
		unsaved := condition(p, api.StateNotDurable)
		return unsaved.Message, p.Status.AtRest || unsaved.Status == "True" && p.Status.Phase.Terminal()
	})
}

// RemainsError reports that the containers of a pod are stopped, but the pod could not be deleted because the disk of its state does not
// work. The daemon continues to try.
type RemainsError struct{ Pod, Remains string }

func (e *RemainsError) Error() string {
	return fmt.Sprintf("delete pod %q: its containers are stopped, but it could not be removed: %s", e.Pod, e.Remains)
}

// Remains returns why a pod whose containers are stopped cannot be removed; ok is false if it may still be removed by itself.
func Remains(p *api.Pod) (remains string, ok bool) {
	failed, unsaved := condition(p, api.RemovalFailed), condition(p, api.StateNotDurable)
	return failed.Message, failed.Status == "True" && unsaved.Status == "True" && p.Status.Phase.Terminal()
}

// Deleted waits until pods, given as UID to name, are deleted. The function deleted is called with each, and with an error if the pod
// cannot be removed because the disk of its state does not work: the daemon continues to try.
func Deleted(ctx context.Context, d Daemon, pods map[string]string, deleted func(name, remains string)) error {
	return await(ctx, d, pods, deleted, Remains)
}

// await waits until all pods are done or deleted. It removes them from the map, and calls end with each and with its problem, if any.
func await(ctx context.Context, d Daemon, pods map[string]string, end func(name, problem string),
	done func(*api.Pod) (problem string, ok bool),
) error {
	if len(pods) == 0 {
		return nil
	}
	remove := func(uid, problem string) {
		if name, ok := pods[uid]; ok {
			delete(pods, uid)
			end(name, problem)
		}
	}
	return Until(ctx, d, func() func(*api.PodChange) bool {
		present := map[string]bool{} // by UID
		return func(change *api.PodChange) bool {
			uid := change.Object.Metadata.UID
			present[uid] = true
			switch change.Type {
			case api.Listed:
				for uid := range pods {
					if !present[uid] { // deleted before the watch started
						remove(uid, "")
					}
				}
			case api.Deleted:
				remove(uid, "")
			default:
				if problem, ok := done(&change.Object); ok {
					remove(uid, problem)
				}
			}
			return len(pods) == 0
		}
	})
}
