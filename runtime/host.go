package runtime

import (
	"log/slog"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/oci"
)

// warnAboutHost logs which features of containers this host does not support.
func warnAboutHost(host oci.Host, pidsLimit int64, log *slog.Logger) {
	if !host.Seccomp {
		log.Warn("the kernel does not support seccomp: containers run without a seccomp profile")
	}
	if pidsLimit > 0 && !host.Controllers.Has(cgroup.Pids) {
		log.Warn("the kernel does not have the cgroup controller pids: the number of processes of pods is not limited")
	}
	if !host.Resource {
		log.Warn("the process does not have CAP_SYS_RESOURCE: resource limits of containers cannot exceed its own",
			slog.Uint64("open_files", host.OpenFiles))
	}
}
