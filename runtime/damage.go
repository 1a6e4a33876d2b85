package runtime

import (
	"context"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Damaged returns the files of the engine that were damaged when it started, if containers were killed because of that.
func (r *Runtime) Damaged(ctx context.Context) []lifecycle.Damage {
	var list []lifecycle.Damage
	for _, report := range r.engine.Damaged() {
		if !report.Ended {
			continue
		}
		d := lifecycle.Damage{File: report.File, Error: report.Reason, Aside: report.Aside}
		if report.Container != "" {
			if d.UID = r.podOf(ctx, report.Container); d.UID == "" {
				continue
			}
		}
		list = append(list, d)
	}
	return list
}

// podOf returns the UID of the pod of a container or sandbox; empty: it has no record.
func (r *Runtime) podOf(ctx context.Context, id string) string {
	ctx = engine.Context(ctx)
	if c, err := r.client.ContainerService().Get(ctx, id); err == nil {
		return c.Labels[record.LabelUID]
	}
	if s, err := r.client.SandboxStore().Get(ctx, id); err == nil {
		return s.Labels[record.LabelUID]
	}
	return ""
}
