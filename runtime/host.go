package runtime

import (
	"context"
	"log/slog"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/volume"
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

// selectRuntime selects the OCI runtime of new containers. It needs the lock of the engine.
func (r *Runtime) selectRuntime(ctx context.Context) error {
	var err error
	r.ociRuntime, err = ociruntime.Select(ctx, ociruntime.Options{
		Program: r.opts.RuntimeBinary, Dir: r.dirs.Trial(), Memory: r.dirs.TrialResult(), ShimPath: r.opts.ShimPath, Cgroups: r.cgroups,
		Host: r.host,
	})
	if err != nil {
		return err
	}
	if r.ociRuntime.Reason != "" {
		r.log.InfoContext(ctx, "OCI runtime selected", slog.String("program", r.ociRuntime.Program),
			slog.String("reason", r.ociRuntime.Reason))
	}
	r.engine.SetRuntime(r.ociRuntime.Program, r.ociRuntime.UserNamespaces)
	return nil
}

// OCIRuntime is the OCI runtime of new containers, which does not change.
func (r *Runtime) OCIRuntime() ociruntime.Choice { return r.ociRuntime }

func (r *Runtime) openVolumes() error {
	set, err := volume.New(r.config, volume.Options{
		DataDir: r.dirs.Pods(), RunDir: r.dirs.RunVolumes(), ClaimsDir: r.dirs.PersistentVolumes(),
		RecursiveReadOnly: r.ociRuntime.RecursiveReadOnly, HostPaths: r.opts.HostPaths,
		Protected: r.opts.protected(), Unbindable: r.unbindable,
	})
	if err == nil {
		r.volumes = sandbox.NewVolumes(set, r.opts.capacity(r.cgroups), r.index, r.opts.RefreshInterval)
	}
	return err
}
