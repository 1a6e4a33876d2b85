package simulate

import (
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// requester is who requests what a [Scenario] has, as events show it.
const requester = "the scenario"

// request folds a request, unless the supervisor is down or the pod is removed.
func (p *Pod) request(e lifecycle.Event) {
	if !p.idle() {
		p.fold(e)
	}
}

// Stop requests to stop the pod. If grace is nil, the pod's own grace period applies. It has no effect while the supervisor is
// down.
func (p *Pod) Stop(grace *time.Duration, remove bool) {
	p.request(lifecycle.StopRequested{
		Grace: lifecycle.EffectiveGrace(p.Spec, grace), Delete: remove, By: requester, At: p.world.Now(),
	})
}

// stopByUser stops the pod as podstead stop does: a pod that has completed does not change.
func (p *Pod) stopByUser(h *Happening) {
	if p.status.Phase.Terminal() {
		return
	}
	var grace *time.Duration
	if h.Grace != "" {
		d := h.Grace.Duration()
		grace = &d
	}
	p.Stop(grace, false)
}

// startByUser starts the pod again as podstead start does: a pod that runs does not change.
func (p *Pod) startByUser() {
	if lifecycle.Terminating(p.Spec, p.Facts) {
		p.restartByUser("")
	}
}

// restartByUser restarts the pod or, if it runs, one of its containers, as podstead restart does.
func (p *Pod) restartByUser(container string) {
	switch {
	case p.idle() || p.Facts.Stop.Delete:
		return
	case container == "":
		p.Restart()
	case lifecycle.Terminating(p.Spec, p.Facts) || lifecycle.InitPassed(p.Spec, p.Facts, container):
		return
	default:
		p.RestartContainer(container)
	}
	p.try()
}

// Evict evicts the pod. It has no effect while the supervisor is down.
func (p *Pod) Evict() {
	p.request(lifecycle.PodEvicted{Message: "limit exceeded", At: p.world.Now()})
}

// AddImage makes a container's image available without a pull.
func (p *Pod) AddImage(container string) { p.images[container] = true }

// AddEphemeral adds an ephemeral container to the pod. It has no effect while the supervisor is down.
func (p *Pod) AddEphemeral(container string) {
	p.request(lifecycle.EphemeralAdded{Container: spec.Container{Name: container, Image: "localhost/" + container}, At: p.world.Now()})
}

// LoseSandbox removes the newest sandbox without the supervisor. Its processes continue unless kill is set.
func (p *Pod) LoseSandbox(kill bool) {
	n := p.Facts.Sandbox.N
	if !p.engine.sandboxes[n] {
		return
	}
	delete(p.engine.sandboxes, n)
	if kill {
		for _, proc := range p.alive() {
			p.exit(proc, lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError})
		}
	}
	if p.Facts.SandboxReady() == n { // otherwise the supervisor finds the loss when it starts to watch the sandbox
		p.deliver(lifecycle.SandboxLost{Sandbox: n, Message: "killed", At: p.world.Now()})
	}
}

// Exit terminates the running process of a container.
func (p *Pod) Exit(container string, e lifecycle.Exit) {
	for _, proc := range p.alive() {
		if proc.ref.Container == container {
			p.exit(proc, e)
		}
	}
}

// Restart requests to start the pod again. It has no effect while the supervisor is down.
func (p *Pod) Restart() {
	p.request(lifecycle.RestartRequested{By: requester, JobRun: p.nextRun(), At: p.world.Now()})
}

// Collect requests to remove what the pod has left, if it has finished. It has no effect while the supervisor is down.
func (p *Pod) Collect() {
	if p.idle() || lifecycle.Finished(p.Spec, p.Facts).IsZero() {
		return
	}
	p.fold(lifecycle.CollectionRequested{At: p.world.Now()})
}

// RestartContainer requests to restart one container. It has no effect while the supervisor is down.
func (p *Pod) RestartContainer(container string) {
	p.request(lifecycle.ContainerRestartRequested{Container: container, By: requester, At: p.world.Now()})
}

// Redefine changes the definition of the pod. The images of the restarted and of the added containers are staged if staged is set.
// It has no effect while the supervisor is down, or if too many containers are being removed.
func (p *Pod) Redefine(to *spec.Pod, staged bool, restarted ...string) {
	e := lifecycle.DefinitionChanged{From: p.Spec, To: to, Restarted: restarted, Images: map[string]lifecycle.Image{}, At: p.world.Now()}
	if p.idle() || !e.Fits(p.Facts) {
		return
	}
	for _, c := range slices.Concat(to.InitContainers, to.Containers) {
		if staged && (slices.Contains(restarted, c.Name) || p.Spec.Container(c.Name) == nil) {
			e.Images[c.Name] = lifecycle.Image{ID: "sha256:" + c.Name + "-staged"}
		}
	}
	p.Spec = to
	p.fold(e)
}

// BeginTrial begins a trial of the definition. It has no effect while the supervisor is down.
func (p *Pod) BeginTrial(within, minReady time.Duration, rollsBack bool) {
	p.request(lifecycle.TrialBegun{Trial: lifecycle.NewTrial(within, minReady, rollsBack, p.world.Now())})
}

// KeepTrial ends that a failed definition is held. It has no effect while the supervisor is down.
func (p *Pod) KeepTrial() {
	p.request(lifecycle.TrialKept{At: p.world.Now()})
}

// Records returns the number of records of a container, running or exited.
func (p *Pod) Records(container string) int {
	return len(p.engine.processes[container])
}
