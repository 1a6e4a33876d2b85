package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// SetUnavailable sets whether the engine is unavailable. Its containers continue to run.
func (w *World) SetUnavailable(unavailable bool) {
	w.unavailable = unavailable
	for _, p := range w.pods {
		p.deliverAvailability()
	}
}

// deliverAvailability reports the availability in order and at once: the supervisor concludes it from the answers of the engine.
func (p *Pod) deliverAvailability() {
	e := lifecycle.Event(lifecycle.EngineAvailable{At: p.world.Now()})
	if p.world.unavailable {
		e = lifecycle.EngineUnavailable{At: p.world.Now()}
	}
	p.deliverOnce(e, 0)
}

// SetRegistryDown sets whether images cannot be pulled.
func (w *World) SetRegistryDown(down bool) { w.registryDown = down }

// SetDiskFull sets whether the disk is full: images cannot be pulled, containers cannot be created, and the state of pods is not saved.
// What runs continues to run.
func (w *World) SetDiskFull(full bool) { w.diskFull = full }

// JumpClock changes the wall clock.
func (w *World) JumpClock(d time.Duration) { w.clockOffset += d }

// Crash kills the supervisor. After a delay another one recovers the pods from the saved facts.
func (w *World) Crash(off time.Duration) {
	if w.down {
		return
	}
	kept := map[*Pod][]lifecycle.Event{} // until the next boot
	for _, p := range w.pods {
		for _, e := range p.Facts.Verdicts() {
			kept[p] = append(kept[p], e)
		}
		for _, e := range p.Facts.StopSignals() {
			kept[p] = append(kept[p], e)
		}
	}
	w.restart(off, func() {}, func(p *Pod) {
		for _, e := range kept[p] {
			p.fold(e)
		}
		p.events.At(&p.Facts, w.Now()).Recovered()
	})
}

// Cut powers the host off for a while, without a shutdown. Afterwards the engine has only the records of terminated containers. Unclean
// is whether the supervisor knows that there was no shutdown.
func (w *World) Cut(off time.Duration, unclean bool) {
	saved := map[*Pod]lifecycle.Instant{}
	for _, p := range w.pods {
		for _, processes := range p.engine.processes {
			for _, proc := range processes {
				proc.exited, proc.Exit = true, lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown}
			}
		}
		clear(p.engine.sandboxes)
		saved[p] = p.savedAt
	}
	w.closing = nil
	if w.cut != nil {
		w.cut()
	}
	w.restart(off, func() {
		w.boots++
		w.boot = bootID(w.boots)
		w.booted = w.now
		if w.booting != nil {
			w.booting()
		}
	}, func(p *Pod) {
		shutDown := p.Facts.Stop.Reason == lifecycle.ReasonTerminated
		p.fold(lifecycle.Booted{Saved: saved[p], At: w.Now(), Unclean: unclean && !shutDown})
		if shutDown {
			p.fold(lifecycle.ShutdownEnded{Restart: lifecycle.Restarts(p.Spec), At: w.Now()})
		}
	})
}

// ShutDown stops the pod with the daemon. After a delay another daemon starts it again.
func (p *Pod) ShutDown(off time.Duration) {
	w := p.world
	if p.idle() {
		return
	}
	p.fold(lifecycle.HostShutdown{Grace: time.Minute, By: lifecycle.ByDaemonStop, At: w.Now()})
	w.At(w.now+off, func() {
		w.restart(0, func() {}, func(p *Pod) {
			p.fold(lifecycle.ShutdownEnded{Restart: lifecycle.Restarts(p.Spec), At: w.Now()})
			p.fold(lifecycle.SupervisionGap{At: w.Now()})
		})
	})
}

const (
	// shutdownPeriod is the time in which pods must stop when the host is shut down, the default of pods.shutdownGracePeriod.
	shutdownPeriod = time.Minute
	// shutdownMargin is how long the shutdown waits after that for containers that were killed.
	shutdownMargin = 5 * time.Second
)

// closing is a shutdown of the host, see [supervisor.Supervisor.ShutDown].
type closing struct {
	end      time.Duration // of the period
	order    []*Pod        // to be stopped, each after the one before
	stopping int           // how many pods of the order are being stopped
	share    time.Duration // until when the newest of them holds up the next one
	off      time.Duration // for how long the host is off
}

// Reboot shuts the host down, and starts it after a delay. Pods stop one after the other, in the reverse order of their start.
func (w *World) Reboot(off time.Duration) {
	if w.down || w.closing != nil {
		return
	}
	c := &closing{end: w.now + shutdownPeriod, off: off}
	for _, p := range w.pods {
		switch {
		case p.removed || p.status.Phase.Terminal():
		case p.Facts.Sandbox.Ready.IsZero():
			c.stop(w, p)
		default:
			c.order = append(c.order, p)
		}
	}
	slices.SortStableFunc(c.order, func(a, b *Pod) int {
		return cmp.Compare(b.Facts.Sandbox.Ready.Mono, a.Facts.Sandbox.Ready.Mono)
	})
	w.closing = c
	w.At(c.end+shutdownMargin, func() {
		if w.closing == c {
			w.Cut(off, false)
		}
	})
}

// stop stops a pod.
func (c *closing) stop(w *World, p *Pod) {
	if !p.removed && (!lifecycle.Terminating(p.Spec, p.Facts) || !p.Facts.Stop.Requested.IsZero()) {
		grace := min(lifecycle.EffectiveGrace(p.Spec, nil).Period, max(c.end-w.now, 0))
		p.fold(lifecycle.HostShutdown{Grace: grace, By: lifecycle.ByShutdown, At: w.Now()})
	}
}

// next stops the next pod if those before it have stopped, or do not stop in time. When all have stopped, the host goes down.
func (c *closing) next(w *World) {
	stopped := func(p *Pod) bool { return p.removed || p.status.Phase.Terminal() && p.Facts.Idle() }
	for c.stopping < len(c.order) && (c.stopping == 0 || w.now >= c.share || stopped(c.order[c.stopping-1])) {
		p := c.order[c.stopping]
		c.share = w.now + (c.end-w.now)/time.Duration(len(c.order)-c.stopping)
		c.stopping++
		c.stop(w, p)
		w.mustDecide(p)
		w.At(c.share, func() {})
	}
	if c.stopping == len(c.order) && !slices.ContainsFunc(w.pods, func(p *Pod) bool { return !stopped(p) }) {
		w.Cut(c.off, false)
	}
}

// restart stops the supervisor and starts the next one after a delay. It calls boot once, and begin for each pod.
func (w *World) restart(off time.Duration, boot func(), begin func(*Pod)) {
	if w.endless {
		w.violation("the supervisor is restarted, which was excluded")
	}
	w.supervisor++
	w.down = true
	w.starts = starts{}
	for _, p := range w.pods {
		p.stopProbes()
		clear(p.watched)
		clear(p.devices)
	}
	supervisor := w.supervisor
	w.At(w.now+off, func() {
		if supervisor != w.supervisor {
			return // it crashed again before it started
		}
		w.down = false
		boot()
		for _, p := range w.pods {
			if !p.removed {
				p.reload()
				begin(p)
				p.resume()
			}
		}
	})
}

// resume carries out the unresolved actions again, except for a reboot, and watches the running containers.
func (p *Pod) resume() {
	if p.Facts.Resize.Issued != 0 {
		p.fold(lifecycle.ResizeInterrupted{})
	}
	for _, a := range p.Facts.Unresolved() {
		if _, is := a.(lifecycle.RebootHost); is {
			p.fold(p.failed(a, lifecycle.Failure{Reason: lifecycle.ReasonRebootFailed, Message: "interrupted"}))
			continue
		}
		p.begin(a)
	}
	if p.world.unavailable || !p.Facts.EngineUnavailable.IsZero() {
		p.deliverAvailability()
	}
	for _, ref := range p.Facts.Live() {
		p.watch(ref)
	}
	if n := p.Facts.SandboxReady(); n > 0 {
		p.watchSandbox(n)
	}
}

// rebootHost is the outcome of a request to reboot the host.
func (p *Pod) rebootHost(a lifecycle.RebootHost) lifecycle.Event {
	if p.HoldsReboots {
		return p.failed(a, lifecycle.Failure{Reason: lifecycle.ReasonRebootHeldBack, Message: "held back"})
	}
	return lifecycle.HostRebootRequested{At: p.world.Now()}
}
