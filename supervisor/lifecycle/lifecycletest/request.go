package lifecycletest

import (
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Restart requests to start the pod again. It has no effect while the supervisor is down.
func (w *World) Restart() {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.RestartRequested{By: "test", At: w.Now()})
}

// Collect requests to remove what the pod has left, if it has finished. It has no effect while the supervisor is down.
func (w *World) Collect() {
	if w.down || w.removed || lifecycle.Finished(w.Pod, w.Facts).IsZero() {
		return
	}
	w.fold(lifecycle.CollectionRequested{At: w.Now()})
}

// RestartContainer requests to restart one container. It has no effect while the supervisor is down.
func (w *World) RestartContainer(container string) {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.ContainerRestartRequested{Container: container, By: "test", At: w.Now()})
}

// Redefine changes the definition of the pod. The images of the restarted and of the added containers are staged if staged is set.
// It has no effect while the supervisor is down, or if too many containers are being removed.
func (w *World) Redefine(to *spec.Pod, staged bool, restarted ...string) {
	e := lifecycle.DefinitionChanged{From: w.Pod, To: to, Restarted: restarted, Images: map[string]lifecycle.Image{}, At: w.Now()}
	if w.down || w.removed || !e.Fits(w.Facts) {
		return
	}
	for _, c := range slices.Concat(to.InitContainers, to.Containers) {
		if staged && (slices.Contains(restarted, c.Name) || w.Pod.Container(c.Name) == nil) {
			e.Images[c.Name] = lifecycle.Image{ID: "sha256:" + c.Name + "-staged"}
		}
	}
	w.Pod = to
	w.fold(e)
}

// BeginTrial begins a trial of the definition. It has no effect while the supervisor is down.
func (w *World) BeginTrial(within, minReady time.Duration, rollsBack bool) {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.TrialBegun{Trial: lifecycle.NewTrial(within, minReady, rollsBack, w.Now())})
}

// KeepTrial ends that a failed definition is held. It has no effect while the supervisor is down.
func (w *World) KeepTrial() {
	if w.down || w.removed {
		return
	}
	w.fold(lifecycle.TrialKept{At: w.Now()})
}

// Records returns the number of records of a container, running or exited.
func (w *World) Records(container string) int {
	n := 0
	for ref := range w.engine.processes {
		if ref.Container == container {
			n++
		}
	}
	return n
}
