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
