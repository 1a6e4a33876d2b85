package daemon

import (
	"context"
	"log/slog"

	"github.com/podstead/podstead/runtime/shim"
)

// cgroup is where a daemon lies that was started on demand: not below the command that started it, whose session or service
// may end and take with it what is in its cgroup.
const cgroup = "/podstead/daemon"

// joinCgroup moves this process there, and returns what takes the cgroup away again. Where that is not possible the daemon
// works as well, as long as nobody clears the cgroup of its starter.
func joinCgroup(ctx context.Context, log *slog.Logger) (leave func()) {
	if err := shim.JoinCgroup(cgroup); err != nil {
		log.LogAttrs(ctx, slog.LevelDebug, "daemon stays in the cgroup of its starter", slog.Any("error", err))
	}
	return func() {
		// A process cannot remove the cgroup it is in.
		if err := shim.JoinCgroup("/"); err != nil {
			log.LogAttrs(ctx, slog.LevelDebug, "daemon stays in its cgroup", slog.Any("error", err))
			return
		}
		for _, path := range []string{cgroup, "/podstead"} { // the second only if no pod is left in it
			_ = shim.RemoveCgroup(path)
		}
	}
}
