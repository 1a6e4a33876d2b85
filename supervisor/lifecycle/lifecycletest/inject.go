package lifecycletest

import (
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Stop requests to stop the pod. If grace is nil, the pod's own grace period applies. It has no effect while the supervisor is
// down.
func (w *World) Stop(grace *time.Duration, remove bool) {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.StopRequested{
		Grace: lifecycle.EffectiveGrace(w.Pod, grace), Delete: remove, By: "test", At: w.Now(),
	})
}

// Evict evicts the pod. It has no effect while the supervisor is down.
func (w *World) Evict() {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.PodEvicted{Message: "limit exceeded", At: w.Now()})
}

// AddImage makes a container's image available without a pull.
func (w *World) AddImage(container string) { w.images[container] = true }

// AddEphemeral adds an ephemeral container to the pod. It has no effect while the supervisor is down.
func (w *World) AddEphemeral(container string) {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.EphemeralAdded{Container: spec.Container{Name: container, Image: "localhost/" + container}, At: w.Now()})
}

// LoseSandbox removes the newest sandbox without the supervisor. Its processes continue unless kill is set.
func (w *World) LoseSandbox(kill bool) {
	n := w.Facts.Sandbox.N
	if !w.engine.sandboxes[n] {
		return
	}
	delete(w.engine.sandboxes, n)
	if kill {
		for _, p := range w.alive() {
			w.exit(p, lifecycle.Exit{Code: 137, Reason: lifecycle.ReasonError})
		}
	}
	if w.Facts.SandboxReady() == n { // otherwise the supervisor finds the loss when it starts to watch the sandbox
		w.deliver(lifecycle.SandboxLost{Sandbox: n, Message: "killed", At: w.Now()})
	}
}

// Exit terminates the running process of a container.
func (w *World) Exit(container string, e lifecycle.Exit) {
	for _, p := range w.alive() {
		if p.ref.Container == container {
			w.exit(p, e)
		}
	}
}

// SetUnavailable sets whether the engine is unavailable. Its containers continue to run.
func (w *World) SetUnavailable(unavailable bool) {
	w.unavailable = unavailable
	w.deliverAvailability()
}

// deliverAvailability reports the availability in order and at once: the supervisor concludes it from the answers of the engine.
func (w *World) deliverAvailability() {
	e := lifecycle.Event(lifecycle.EngineAvailable{At: w.Now()})
	if w.unavailable {
		e = lifecycle.EngineUnavailable{At: w.Now()}
	}
	w.deliverOnce(e, 0)
}

// JumpClock changes the wall clock.
func (w *World) JumpClock(d time.Duration) { w.clockOffset += d }

// Crash kills the supervisor. After a delay another one recovers the pod from the saved facts.
func (w *World) Crash(off time.Duration) {
	if !w.down {
		verdicts, signals := w.Facts.Verdicts(), w.Facts.StopSignals() // kept until the next boot
		w.restart(off, func() {
			for _, e := range verdicts {
				w.fold(e)
			}
			for _, e := range signals {
				w.fold(e)
			}
		})
	}
}

// Reboot powers the host off for a while. Afterwards the engine has only the records of terminated containers.
func (w *World) Reboot(off time.Duration) {
	for _, p := range w.engine.processes {
		p.exited, p.Exit = true, lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown}
	}
	clear(w.engine.sandboxes)
	saved := w.savedAt
	w.restart(off, func() {
		w.boots++
		w.booted = w.now
		w.fold(lifecycle.Booted{Saved: saved, At: w.Now()})
	})
}

// ShutDown stops the pod with the daemon. After a delay another daemon starts it again.
func (w *World) ShutDown(off time.Duration) {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.HostShutdown{Grace: time.Minute, By: lifecycle.ByDaemonStop, At: w.Now()})
	w.At(w.now+off, func() {
		w.restart(0, func() {
			w.fold(lifecycle.ShutdownEnded{Restart: lifecycle.Restarts(w.Pod), At: w.Now()})
			w.fold(lifecycle.SupervisionGap{At: w.Now()})
		})
	})
}

// restart stops the supervisor and starts the next one after a delay.
func (w *World) restart(off time.Duration, begin func()) {
	if w.removed {
		return
	}
	w.supervisor++
	w.down = true
	w.stopProbes()
	clear(w.waits.watched)
	supervisor := w.supervisor
	w.At(w.now+off, func() {
		if supervisor != w.supervisor {
			return // it crashed again before it started
		}
		w.down = false
		w.reload()
		begin()
		w.resume()
	})
}

// resume carries out the unresolved actions again, except for a reboot, and watches the running containers.
func (w *World) resume() {
	for _, a := range w.Facts.Unresolved() {
		if _, is := a.(lifecycle.RebootHost); is {
			w.fold(w.failed(a, lifecycle.Failure{Reason: lifecycle.ReasonRebootFailed, Message: "interrupted"}))
			continue
		}
		w.begin(a)
	}
	if w.unavailable || !w.Facts.EngineUnavailable.IsZero() {
		w.deliverAvailability()
	}
	for _, ref := range w.Facts.Live() {
		w.watch(ref)
	}
	if n := w.Facts.SandboxReady(); n > 0 {
		w.watchSandbox(n)
	}
}

// rebootHost is the outcome of a request to reboot the host, which is not rebooted: see [World.Reboot].
func (w *World) rebootHost(a lifecycle.RebootHost) lifecycle.Event {
	if w.HoldsReboots {
		return w.failed(a, lifecycle.Failure{Reason: lifecycle.ReasonRebootHeldBack, Message: "held back"})
	}
	return lifecycle.HostRebootRequested{At: w.Now()}
}
