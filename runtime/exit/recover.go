package exit

import (
	"context"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Recover records the exits of containers while no engine was running, by container ID. The engine reports them only until its next start.
func (r *Recorder) Recover(ctx context.Context, exits map[string]engine.Exit) error {
	for id, exited := range exits {
		c, err := r.client.LoadContainer(ctx, id)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		info := record.Info(ctx, c)
		if _, recorded := FromLabels(info.Labels); recorded {
			continue
		}
		e := FromStatus(exited.Status, exited.At)
		if exited.Unknown {
			e = unobserved(exited.At)
		}
		// The shim writes the exit before it records an OOM kill. A shim that was killed in between has not recorded it.
		if exited.OOMKilled || r.oomRecorded(ctx, c) || r.cgroups.OOMKilled(info.Labels[record.LabelUID], id) {
			e.Reason, e.MemoryPeak = lifecycle.ReasonOOMKilled, max(exited.MemoryPeak, r.shims.MemoryPeak(id))
		}
		r.record(ctx, id, e, func() {})
	}
	return nil
}

// oomRecorded reports whether the shim of an exited container has recorded an OOM kill. A running shim may be about to do so: it
// answers a wait afterwards.
func (r *Recorder) oomRecorded(ctx context.Context, c client.Container) bool {
	ctx, cancel := engine.WithTimeout(ctx, engine.RecordExitTimeout)
	defer cancel()
	if task, err := c.Task(ctx, nil); err == nil {
		if done, err := task.Wait(ctx); err == nil {
			<-done // also received when ctx ends
		}
	}
	killed, err := r.shims.OOMKilled(c.ID())
	return err == nil && killed
}
