package daemon

import (
	"context"
	"log/slog"
	"path"

	"github.com/podstead/podstead/runtime/cgroup"
)

// CgroupOnDemand is the place of a daemon that was started on demand: not below the command that started it, whose session or
// service may end and take with it what is in its cgroup.
const CgroupOnDemand = "/podstead/daemon"

// joinCgroup moves this process to a cgroup, and returns what takes the cgroup away again. Where that is not possible the
// daemon works as well, as long as nobody clears the cgroup of its starter.
func joinCgroup(ctx context.Context, place string, log *slog.Logger) (leave func()) {
	if err := cgroup.Join(place); err != nil {
		log.LogAttrs(ctx, slog.LevelDebug, "daemon stays in the cgroup of its starter", slog.Any("error", err))
	}
	return func() {
		// A process cannot remove the cgroup it is in.
		if err := cgroup.Join("/"); err != nil {
			log.LogAttrs(ctx, slog.LevelDebug, "daemon stays in its cgroup", slog.Any("error", err))
			return
		}
		for _, p := range []string{place, path.Dir(place)} { // the second only if no pod is left in it
			_ = cgroup.Remove(p)
		}
	}
}
