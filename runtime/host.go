package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// warnAboutHost logs which features of containers this host does not support.
func (r *Runtime) warnAboutHost() {
	if !r.host.Seccomp {
		r.log.Warn("the kernel does not support seccomp: containers run without a seccomp profile")
	}
	if r.opts.PidsLimit > 0 && !r.host.Controllers.Has(cgroup.Pids) {
		r.log.Warn("the kernel does not have the cgroup controller pids: the number of processes of pods is not limited")
	}
	if !r.host.Resource {
		r.log.Warn("the process does not have CAP_SYS_RESOURCE: resource limits of containers cannot exceed its own",
			slog.Uint64("open_files", r.host.OpenFiles))
	}
}

// recursiveReadOnly reports whether the kernel (5.12) and the OCI runtime support recursive read-only mounts (KEP-3857).
func recursiveReadOnly(ctx context.Context, runtime string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := unix.MountSetattr(-1, "", 0, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
		return false
	}
	text, err := exec.CommandContext(ctx, runtime, "features").Output() // the OCI runtime that runs every container
	var features struct {
		MountOptions []string `json:"mountOptions"`
	}
	return err == nil && json.Unmarshal(text, &features) == nil && slices.Contains(features.MountOptions, "rro")
}
