package lifecycletest

import (
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Stop asks the pod to end. A nil grace is the pod's own. A supervisor that is down does not hear it.
func (w *World) Stop(grace *time.Duration, remove bool) {
	if w.down || w.gone {
		return
	}
	w.fold(lifecycle.StopRequested{
		Grace: lifecycle.EffectiveGrace(w.Pod, grace), Delete: remove, By: "somebody", At: w.Now(),
	})
}

// Evict has the pod use more than it may. A supervisor that is down does not see it.
func (w *World) Evict() {
	if w.down || w.gone {
		return
	}
	w.fold(lifecycle.PodEvicted{Message: "too much", At: w.Now()})
}

// Bring makes a container's image come without a pull.
func (w *World) Bring(container string) { w.images[container] = true }

// Debug adds an ephemeral container to the pod. A supervisor that is down does not hear it.
func (w *World) Debug(container string) {
	if w.down || w.gone {
		return
	}
	w.fold(lifecycle.EphemeralAdded{Container: spec.Container{Name: container, Image: "localhost/" + container}, At: w.Now()})
}

// LoseSandbox takes the newest sandbox away from under the supervisor. What runs in it runs on unless it is killed.
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
	if w.Facts.SandboxReady() == n { // else nobody watches it yet: who comes to is told
		w.tell(lifecycle.SandboxLost{Sandbox: n, Message: "killed", At: w.Now()})
	}
}

// Exit ends the running process of a container from outside.
func (w *World) Exit(container string, e lifecycle.Exit) {
	for _, p := range w.alive() {
		if p.ref.Container == container {
			w.exit(p, e)
		}
	}
}

// Away sets whether the engine is away. Its containers run on meanwhile.
func (w *World) SetUnavailable(away bool) {
	w.away = away
	w.tellAway()
}

func (w *World) tellAway() {
	if w.away {
		w.tell(lifecycle.EngineUnavailable{At: w.Now()})
	} else {
		w.tell(lifecycle.EngineAvailable{At: w.Now()})
	}
}

// Leap moves the wall clock.
func (w *World) Leap(d time.Duration) { w.leap += d }

// Crash kills the supervisor; another one takes the pod up from the saved facts after a time.
func (w *World) Crash(off time.Duration) {
	if !w.down {
		verdicts, signals := w.Facts.Verdicts(), w.Facts.StopSignals() // they are kept until the next boot
		w.end(off, func() {
			for _, e := range verdicts {
				w.fold(e)
			}
			for _, e := range signals {
				w.fold(e)
			}
		})
	}
}

// Reboot cuts the machine's power for a time: nothing of the engine's is left but what is dead.
func (w *World) Reboot(off time.Duration) {
	for _, p := range w.engine.processes {
		p.over, p.Exit = true, lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown}
	}
	clear(w.engine.sandboxes)
	saved := w.savedAt
	w.end(off, func() {
		w.boots++
		w.booted = w.now
		w.fold(lifecycle.Booted{Saved: saved, At: w.Now()})
	})
}

// end ends the supervisor's life and begins the next one.
func (w *World) end(off time.Duration, begin func()) {
	if w.gone {
		return
	}
	w.life++
	w.down = true
	w.forget()
	life := w.life
	w.At(w.now+off, func() {
		if life != w.life {
			return // it died again before it was up
		}
		w.down = false
		w.reload()
		begin()
		w.resume()
	})
}

// resume carries out again what has no outcome, and watches what runs.
func (w *World) resume() {
	for _, a := range w.Facts.Unresolved() {
		w.begin(a)
	}
	if w.away || !w.Facts.EngineUnavailable.IsZero() {
		w.tellAway()
	}
	for _, ref := range w.Facts.Live() {
		w.watch(ref)
	}
	if n := w.Facts.SandboxReady(); n > 0 {
		w.watchSandbox(n)
	}
}
