package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

const (
	// effectTimeout applies to all effects except pulls and hooks. The runtime ends a pull that makes no progress.
	effectTimeout = 2 * time.Minute
	// removeWait bounds how long a removal waits for the disk: pods that shut down one after the other wait for each removal.
	removeWait = 500 * time.Millisecond
	// signalTimeout is shorter, because the next signal waits for it.
	signalTimeout = 10 * time.Second
	// cleanupTimeout is the time for an effect to return after its context is done. After that it is abandoned.
	cleanupTimeout = 5 * time.Second
)

// effects carries out the actions of one pod, watches what runs, and reports the results to the mailbox of the pod's loop. Its methods
// belong to the goroutine of the loop and do not block: the work is done in other goroutines.
type effects struct {
	shared  *shared
	uid     string
	pod     *atomic.Pointer[spec.Pod] // with ephemeral containers
	mailbox mailbox
	log     *slog.Logger

	running       sync.WaitGroup                // the goroutines, which may send messages
	pulls         map[string]context.CancelFunc // by container
	hooks         map[hookRef]context.CancelFunc
	probes        map[lifecycle.ProbeRef]*activeProbe
	waits         map[lifecycle.WaitRef]context.CancelFunc
	devices       map[deviceKey]context.CancelFunc
	cancelSandbox context.CancelFunc // stops the watch of the sandbox; may be nil
}

// hookRef names one hook of one attempt.
type hookRef struct {
	lifecycle.Ref
	kind lifecycle.HookKind
}

// activeProbe is a probe that runs.
type activeProbe struct {
	stop    context.CancelFunc
	ordered bool // by the newest decision
	spec    *spec.Probe
	ports   []spec.ContainerPort // of the container: the probe can name one
}

func newEffects(sh *shared, uid string, pod *atomic.Pointer[spec.Pod], m mailbox, log *slog.Logger) *effects {
	return &effects{
		shared: sh, uid: uid, pod: pod, mailbox: m, log: log,
		pulls:  map[string]context.CancelFunc{},
		hooks:  map[hookRef]context.CancelFunc{},
		probes: map[lifecycle.ProbeRef]*activeProbe{},
		waits:  map[lifecycle.WaitRef]context.CancelFunc{}, devices: map[deviceKey]context.CancelFunc{},
	}
}

// start carries out an action in the background. Starts and removals of sandboxes and containers wait until the state is saved: without it
// the exit of a container that was removed would be unknown after a kill of the daemon. Removals wait for [removeWait] at most, and stops
// do not wait. The pod has the containers as the action needs them. The address is that of the pod, for hooks.
func (e *effects) start(ctx context.Context, a lifecycle.Action, pod *spec.Pod, address string, saved *state.Write) {
	if lifecycle.RecordOnly(a) {
		return
	}
	timeout := effectTimeout
	switch a := a.(type) {
	case lifecycle.CancelPull:
		e.cancelPull(a.Container)
		return
	case lifecycle.CancelHook:
		if cancel := e.hooks[hookRef{a.Ref, a.Hook}]; cancel != nil {
			cancel()
		}
		return
	case lifecycle.RunPostStart:
		e.startHook(ctx, a, hookRef{a.Ref, lifecycle.PostStart}, pod, address, 0)
		return
	case lifecycle.RunPreStop:
		e.startHook(ctx, a, hookRef{a.Ref, lifecycle.PreStop}, pod, address, a.Limit)
		return
	case lifecycle.PullImage:
		e.pulls[a.Container] = e.run(ctx, 0, a, func(ctx context.Context) (effectResult, error) { return e.pull(ctx, pod, a) })
		return
	case lifecycle.RemoveSandbox:
		if e.cancelSandbox != nil {
			e.cancelSandbox()
		}
	case lifecycle.StopContainer, lifecycle.KillContainer:
		timeout = signalTimeout
	}
	e.run(ctx, timeout, a, func(ctx context.Context) (r effectResult, err error) {
		err = e.shared.space.Do(func() error {
			r, err = e.perform(ctx, a, pod, saved)
			return err
		})
		return r, err
	})
}

// cancelPull cancels the pull of a container's image if it is in progress.
func (e *effects) cancelPull(container string) {
	if cancel := e.pulls[container]; cancel != nil {
		cancel()
	}
}

// cancelRemovedHooks cancels the postStart hooks that a new definition does not have any more. Those of removed containers are cancelled
// when the containers stop.
func (e *effects) cancelRemovedHooks(to *spec.Pod) {
	for h, cancel := range e.hooks {
		if c := to.Container(h.Container); c != nil && h.kind == lifecycle.PostStart && handlerOf(c, h.kind) == nil {
			cancel()
		}
	}
}

// finished forgets the hook that an action has run.
func (e *effects) finished(a lifecycle.Action) {
	switch a := a.(type) {
	case lifecycle.RunPostStart:
		delete(e.hooks, hookRef{a.Ref, lifecycle.PostStart})
	case lifecycle.RunPreStop:
		delete(e.hooks, hookRef{a.Ref, lifecycle.PreStop})
	}
}

// run calls do in a goroutine of its own, with a timeout (0: none), and sends one [effectDone]. If ctx ends, which is the context of the
// loop, it sends nothing: the next supervisor finds out. The returned function cancels do.
func (e *effects) run(ctx context.Context, timeout time.Duration, a lifecycle.Action,
	do func(context.Context) (effectResult, error),
) context.CancelFunc {
	limited, cancel := guard.WithTimeout(ctx, timeout)
	handled := e.shared.quarantine.Begin(e.uid, e.pod.Load().Name)
	e.running.Go(func() {
		defer handled()
		defer cancel()
		result, err := guard.Call(limited, cleanupTimeout, e.log, do)
		e.mailbox.post(ctx, effectDone{a, result, err})
	})
	return cancel
}

// failureOf returns the failure that an error carries. An error without one is a failed attempt.
func failureOf(err error) lifecycle.Failure {
	if f, classified := errors.AsType[lifecycle.Failure](err); classified {
		return f
	}
	return lifecycle.Failure{Message: oneLine(err)}
}

// perform carries out an action that is neither a pull nor a hook.
func (e *effects) perform(ctx context.Context, a lifecycle.Action, pod *spec.Pod, saved *state.Write) (r effectResult, err error) {
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		saved.Wait(ctx, startTimeout)
		r.sandbox, err = e.shared.runtime.StartSandbox(ctx, e.uid, pod, a)
		return r, err
	case lifecycle.FindImage:
		r.image, err = e.shared.runtime.FindImage(ctx, pod, a)
		return r, err
	case lifecycle.StartContainer:
		saved.Wait(ctx, startTimeout)
		defer e.shared.acquireStart(ctx)()
		r.container, err = e.shared.runtime.StartContainer(ctx, e.uid, pod, a)
		return r, err
	case lifecycle.StopContainer:
		return r, e.shared.runtime.StopContainer(ctx, e.uid, pod, a.Ref)
	case lifecycle.KillContainer:
		return r, e.shared.runtime.KillContainer(ctx, e.uid, a.Ref)
	case lifecycle.RemoveContainer:
		saved.Wait(ctx, removeWait)
		return r, e.shared.runtime.RemoveContainer(ctx, e.uid, pod, a.Ref)
	case lifecycle.ResizePod:
		saved.Wait(ctx, startTimeout) // otherwise the next supervisor would not know that the cgroups have other limits
		return r, e.shared.runtime.ResizePod(ctx, e.uid, pod, a)
	case lifecycle.RemoveSandbox:
		saved.Wait(ctx, removeWait)
		return r, e.shared.runtime.RemoveSandbox(ctx, e.uid, a.Sandbox)
	case lifecycle.CollectPod:
		return r, e.shared.runtime.CollectPod(ctx, e.uid, pod)
	case lifecycle.RebootHost:
		return r, e.reboot(ctx, pod.Name)
	case lifecycle.RemovePod:
		saved.Wait(ctx, removeWait)
		return r, e.shared.runtime.RemovePod(ctx, e.uid, pod)
	}
	return r, fmt.Errorf("no effect for %T", a)
}

// pull carries out a pull and sends [pullProgress].
func (e *effects) pull(ctx context.Context, pod *spec.Pod, a lifecycle.PullImage) (effectResult, error) {
	begun := time.Now()
	r := &pullReports{ctx: ctx, mailbox: e.mailbox, container: a.Container, begun: begun}
	done := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() { r.run(done) })
	image, err := e.shared.runtime.PullImage(ctx, pod, a, r.report)
	close(done)
	background.Wait() // no report follows the result
	image.Took = time.Since(begun)
	return effectResult{image: image}, err
}

// startHook runs a hook in the background, with a timeout (0: none). A hook that the definition does not have any more has nothing to do.
func (e *effects) startHook(ctx context.Context, a lifecycle.Action, h hookRef, pod *spec.Pod, address string, timeout time.Duration) {
	c := pod.Container(h.Container)
	handler := handlerOf(c, h.kind)
	e.hooks[h] = e.run(ctx, timeout, a, func(ctx context.Context) (effectResult, error) {
		if handler == nil {
			return effectResult{}, nil
		}
		warning, err := e.shared.hooks.Run(ctx, e.uid, address, c, h.Ref, handler)
		return effectResult{warning: warning}, err
	})
}

// handlerOf returns the hook of a container; nil if it has none.
func handlerOf(c *spec.Container, kind lifecycle.HookKind) *spec.LifecycleHandler {
	switch {
	case c == nil || c.Lifecycle == nil:
		return nil
	case kind == lifecycle.PreStop:
		return c.Lifecycle.PreStop
	}
	return c.Lifecycle.PostStart
}

// completed returns the event of an action that succeeded.
func completed(a lifecycle.Action, r effectResult, now lifecycle.Instant) lifecycle.Event {
	switch a := a.(type) {
	case lifecycle.StartSandbox:
		r.sandbox.At = now
		return r.sandbox
	case lifecycle.FindImage:
		r.image.At = now
		return r.image
	case lifecycle.PullImage:
		r.image.At = now
		return r.image
	case lifecycle.StartContainer:
		r.container.At = now
		return r.container
	case lifecycle.StopContainer:
		return lifecycle.SignalSent{Ref: a.Ref, At: now}
	case lifecycle.KillContainer:
		return lifecycle.SignalSent{Ref: a.Ref, Kill: true, At: now}
	case lifecycle.RunPostStart:
		return lifecycle.HookFinished{Ref: a.Ref, Hook: lifecycle.PostStart, At: now}
	case lifecycle.RunPreStop:
		return lifecycle.HookFinished{Ref: a.Ref, Hook: lifecycle.PreStop, At: now}
	case lifecycle.ResizePod:
		return lifecycle.PodResized{N: a.N, At: now}
	case lifecycle.RemoveContainer:
		return lifecycle.ContainerRemoved{Ref: a.Ref, At: now}
	case lifecycle.RemoveSandbox:
		return lifecycle.SandboxRemoved{Sandbox: a.Sandbox, At: now}
	case lifecycle.CollectPod:
		return lifecycle.PodCollected{At: now}
	case lifecycle.RebootHost:
		return lifecycle.HostRebootRequested{At: now}
	case lifecycle.RemovePod:
		return lifecycle.PodRemoved{At: now}
	}
	panic(fmt.Sprintf("no event for %T", a))
}

// reboot requests a reboot of the host.
func (e *effects) reboot(ctx context.Context, pod string) error {
	if e.shared.rebooter == nil {
		return lifecycle.Failure{Reason: lifecycle.ReasonRebootHeldBack, Message: "reboots are disabled"}
	}
	return e.shared.rebooter.Reboot(ctx, pod)
}

// setProbes starts and stops probes so that exactly the ordered ones run. A changed probe starts again.
func (e *effects) setProbes(ctx context.Context, orders []lifecycle.ProbeOrder, address string) {
	for _, p := range e.probes {
		p.ordered = false
	}
	for _, o := range orders {
		p, c := e.probes[o.ProbeRef], o.Definition
		if p != nil && (!reflect.DeepEqual(p.spec, o.Spec) || !slices.Equal(p.ports, c.Ports)) { // changed in place
			p.stop()
			p = nil
		}
		if p == nil {
			p = &activeProbe{stop: e.startProbe(ctx, o, c, address), spec: o.Spec, ports: c.Ports}
			e.probes[o.ProbeRef] = p
		}
		p.ordered = true
	}
	for ref, p := range e.probes {
		if !p.ordered {
			p.stop()
			delete(e.probes, ref)
		}
	}
}

// startProbe starts one probe. It sends [probeEvents] until the probe is stopped.
func (e *effects) startProbe(ctx context.Context, o lifecycle.ProbeOrder, c *spec.Container, address string) (stop context.CancelFunc) {
	probing, stop := context.WithCancel(ctx)
	e.running.Go(func() {
		e.shared.prober.Probe(probing, e.uid, address, c, o, func(events []lifecycle.Event) {
			e.mailbox.post(probing, probeEvents{watched{probing.Done()}, events})
		})
	})
	return stop
}
