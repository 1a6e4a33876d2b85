package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path"

	"github.com/podstead/podstead/runtime/cgroup"
)

// CgroupOnDemand is the cgroup of a daemon that was started on demand. In the cgroup of the command that started it, the daemon would
// be killed with the session or the service of the command.
const CgroupOnDemand = "/podstead/daemon"

// joinCgroup moves this process to a cgroup, and returns a function that removes the cgroup. A failure is logged only: the daemon works
// in the cgroup of the command too, until that cgroup is killed.
//
// The cgroup limits the memory of the daemon in bytes (0: no limit), so that a defect does not exhaust the memory of the host.
func joinCgroup(ctx context.Context, name string, memory int64, log *slog.Logger) (remove func()) {
	if err := errors.Join(cgroup.SetMemory(name, memory), cgroup.Join(name)); err != nil {
		log.LogAttrs(ctx, slog.LevelDebug, "join cgroup of the daemon", slog.Any("error", err))
	}
	return func() {
		// A process cannot remove its own cgroup.
		if err := cgroup.Join("/"); err != nil {
			log.LogAttrs(ctx, slog.LevelDebug, "join root cgroup", slog.Any("error", err))
			return
		}
		for _, name := range []string{name, path.Dir(name)} { // removing the parent fails while it contains pods
			_ = cgroup.Remove(name)
		}
	}
}
