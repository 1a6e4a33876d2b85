package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/container"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exec"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/files"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// Start starts the engine, recovers the running containers, and returns when the runtime is ready. Values of ctx reach the engine, but its
// cancellation does not stop it, see [Runtime.Close].
func Start(ctx context.Context, o Options) (*Runtime, error) {
	o = o.withDefaults()
	if err := ociruntime.Check(o.RuntimeBinary); err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	host, err := oci.DetectHost(ctx)
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	if o.Rootless {
		if host, err = host.WithoutRoot(o.Delegated.Controllers, o.Delegated.Missing); err != nil {
			return nil, fmt.Errorf("start runtime: %w", err)
		}
	}
	bootID, err := proc.BootID()
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	cgroups, err := o.cgroups(host.UnifiedCgroups)
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	reports := &receiver[engine.MonitorReport]{maxEarly: maxEarlyMonitorReports}
	e, err := engine.Start(ctx, engine.Options{
		Root:          o.dirs().Engine(),
		State:         o.dirs().EngineRun(),
		Roots:         o.dirs().Roots(),
		ShimPath:      o.ShimPath,
		MonitorPath:   o.MonitorPath,
		MonitorCgroup: cgroups.Monitor(), WithoutCgroups: o.Rootless,
		PlaceMonitor:  cgroups.PlaceMonitor,
		ReportMonitor: reports.add,
		Runtime:       o.RuntimeBinary,
		Classes:       slices.Sorted(maps.Values(o.RuntimeClasses)),
		SystemdCgroup: cgroups.Systemd(),
		Log:           o.Logger,
	})
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		opts: o, dirs: o.dirs(), log: o.Logger, host: host, bootID: bootID, cgroups: cgroups,
		config: configsource.Source{Dir: o.ConfigDir, Credentials: o.CredentialsDir, Decrypted: configsource.NewDecrypted()},
		engine: e, client: e.Client(), index: sandbox.NewIndex(), monitorReports: reports,
	}
	if err := r.compose(engine.Context(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("start runtime: %w", err), r.Close())
	}
	r.startWorkers(engine.Context(ctx))
	if err := r.execs.KillLeft(engine.Context(ctx)); err != nil {
		r.log.WarnContext(ctx, "cannot kill the commands of an earlier daemon", slog.Any("error", err))
	}
	return r, nil
}

// cgroups returns the cgroups of pods.
func (o Options) cgroups(unified bool) (podcgroup.Groups, error) {
	if !o.Rootless {
		return podcgroup.New(o.CgroupDriver, o.CgroupRoot, unified)
	}
	state := engine.MonitorDir(o.dirs().EngineRun())
	pidOf := func(id string) int { return monitor.PIDOf(state, id) }
	if o.Delegated.Path == "" {
		return podcgroup.WithoutCgroups(pidOf), nil
	}
	return podcgroup.Delegated(o.Delegated.Path, pidOf)
}

// environment is [container.ProcessFiles.Environment]. A bundle that was lost is written again.
func (r *Runtime) environment(ctx context.Context, id string, s *specs.Spec) ([]string, error) {
	files := container.NewProcessFiles(r.dirs)
	env, err := files.Environment(id, s)
	if !errors.Is(err, fs.ErrNotExist) {
		return env, err
	}
	if restoreErr := r.engine.RestoreBundle(ctx, id); restoreErr != nil {
		return nil, errors.Join(err, restoreErr)
	}
	return files.Environment(id, s)
}

// compose creates the parts of the runtime, and recovers the state of an earlier daemon. After an error, the caller calls Close.
func (r *Runtime) compose(ctx context.Context) error {
	if err := r.keepWithoutCgroups(ctx); err != nil {
		return err
	}
	if err := container.CheckDriver(r.opts.LogDriver, r.dirs.Run); err != nil {
		return err
	}
	// All of the engine's directory: bundles are renamed within it, which is not possible between mounts.
	var err error
	r.unbindable, err = isolateMounts(r.dirs.EngineRun(), r.dirs.Roots(), r.dirs.Namespaces(), r.dirs.ImageVolumes(), r.dirs.RunVolumes(),
		r.dirs.Files())
	if err != nil {
		return err
	}
	snapshotter := r.opts.Images.Snapshotter
	if snapshotter == "" {
		snapshotter, r.nativeReason, err = selectSnapshotter(r.dirs.Engine(), r.engine.LayerDir, tryOverlay)
		if err != nil {
			return fmt.Errorf("try overlayfs: %w", err)
		}
		r.opts.Images.Snapshotter = snapshotter
	}
	if r.nativeReason != "" {
		r.log.WarnContext(ctx, "each container has a copy of the files of its image", slog.String("reason", r.nativeReason))
	}
	r.opts.Images.Collect = r.engine.CollectGarbage
	r.images = image.New(r.client, r.opts.Images)
	r.imageVolumes = container.NewImageVolumes(r.client.SnapshotService(snapshotter), r.images, r.dirs)
	r.exits = exit.NewRecorder(r.client, r.engine, r.cgroups, r.dirs, r.bootID, r.log)
	r.execs = exec.New(exec.Config{
		Client: r.client, Cgroups: r.cgroups, Bundles: r.dirs.EngineRun(), Dir: r.dirs.Exec(),
		Environment: r.environment,
		Exited:      r.exits.Exited, Session: r.engine.ExecSession, AwaitResponse: r.engine.AwaitResponse, Monitor: r.engine,
		Log: r.log,
	})
	r.garbage = container.NewLayerCollector(r.engine.CollectGarbage, container.Layers{
		Snapshots: r.client.SnapshotService(snapshotter), Dir: r.engine.LayerDir(snapshotter),
	}, r.log)
	warnAboutHost(r.host, r.opts.PidsLimit, r.log)
	remaps := sandbox.CanRemap(ctx, r.client, snapshotter, r.log)
	r.users = sandbox.NewUsers(r.dirs, remaps, r.host.LastID)
	if err := r.images.DeleteLeases(ctx); err != nil {
		r.log.WarnContext(ctx, "cannot delete the leases of an earlier daemon, they will expire", slog.Any("error", err))
	}
	if err := r.exits.Recover(ctx, r.engine.MissedExits()); err != nil {
		return err
	}
	if err := r.openNetwork(ctx); err != nil {
		return err
	}
	if err := r.selectRuntime(ctx); err != nil {
		return err
	}
	if err := r.openVolumes(); err != nil {
		return err
	}
	dns := ""
	if r.opts.Rootless {
		dns = oci.ForwardedDNS
	}
	r.etc = sandbox.NewEtcFiles(r.dirs, r.network, r.index, r.log, dns)
	evictions := stats.NewDiskMonitor(r.client, r.volumes, r.dirs, r.opts.UsageInterval, r.log)
	r.stats = stats.NewCollector(r.cgroups, r.dirs, evictions, r.log)
	r.sandboxes = sandbox.New(sandbox.Config{
		Client: r.client, Engine: r.engine, Dirs: r.dirs, Cgroups: r.cgroups, Host: r.host, PidsLimit: r.opts.PidsLimit,
		Exits: r.exits, Etc: r.etc, Volumes: r.volumes, Users: r.users, Network: r.network, Index: r.index, Locks: &r.podLocks,
		Evictions: evictions, Cleared: r.addCleared, Classes: &r.classes,
	})
	r.containers = container.New(container.Config{
		Client: r.client, Engine: r.engine, Images: r.images, Snapshotter: snapshotter, Dirs: r.dirs, Cgroups: r.cgroups,
		Host: r.host, PidsLimit: r.opts.PidsLimit, BootID: r.bootID, ConfigDir: r.opts.ConfigDir, CDIDirs: r.opts.CDIDirs,
		Values: r.config, Exits: r.exits, Etc: r.etc, Volumes: r.volumes, ImageVolumes: r.imageVolumes, Users: r.users, Network: r.network,
		AppArmor: container.KernelAppArmor(), Garbage: r.garbage, Logs: r.opts.logs(), RecursiveReadOnly: r.recursiveReadOnly,
	})
	r.files, err = files.New(files.Config{
		Client: r.client, Snapshotter: snapshotter, Dir: r.dirs.Files(), Task: r.exits.Task, ProcessDir: r.cgroups.ProcessDir,
		IDs:     r.users.Find,
		Volumes: r.containers.Volumes,
	})
	return err
}

// keepWithoutCgroups finds the pods of a user that were started without cgroups. They have none until their sandbox is started again.
func (r *Runtime) keepWithoutCgroups(ctx context.Context) error {
	if !r.cgroups.IsDelegated() {
		return nil
	}
	records, err := record.Sandboxes(ctx, r.client)
	for _, uid := range sandbox.WithoutCgroup(records) {
		r.cgroups.SetWithout(uid)
	}
	return err
}

// warnAboutHost logs which features of containers this host does not support.
func warnAboutHost(host oci.Host, pidsLimit int64, log *slog.Logger) {
	if !host.Seccomp {
		log.Warn("the kernel does not support seccomp: containers run without a seccomp profile")
	}
	if pidsLimit > 0 && !host.Rootless && !host.Controllers.Has(cgroup.Pids) {
		log.Warn("the kernel does not have the cgroup controller pids: the number of processes of pods is not limited")
	}
	if !host.Resource && !host.Rootless {
		log.Warn("the process does not have CAP_SYS_RESOURCE: resource limits of containers cannot exceed its own",
			slog.Uint64("open_files", host.HardLimits[spec.UlimitOpenFiles]))
	}
}

func (r *Runtime) openNetwork(ctx context.Context) error {
	records, err := record.Sandboxes(ctx, r.client)
	if err != nil {
		return err
	}
	var live []string
	for _, s := range records {
		live = append(live, s.Labels[record.LabelUID])
	}
	r.network, err = sandbox.OpenNetwork(ctx, r.opts.network(r.bootID), live)
	return err
}

// selectRuntime selects the OCI runtime of new containers. It needs the lock of the engine.
func (r *Runtime) selectRuntime(ctx context.Context) error {
	var err error
	r.ociRuntime, err = ociruntime.Select(ctx, ociruntime.Options{
		Program: r.opts.RuntimeBinary, Dir: r.dirs.Trial(), Memory: r.dirs.TrialResult(), Pause: r.opts.MonitorPath, Cgroups: r.cgroups,
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
	r.classes.Set(r.opts.RuntimeClasses)
	return nil
}

// recursiveReadOnly reports whether an OCI runtime supports recursive read-only mounts. An empty name is that of pods without a class.
func (r *Runtime) recursiveReadOnly(ctx context.Context, program string) bool {
	if program == "" {
		return r.ociRuntime.RecursiveReadOnly
	}
	return r.classes.RecursiveReadOnly(ctx, program)
}

func (r *Runtime) openVolumes() error {
	set, err := volume.New(r.config, volume.Options{
		DataDir: r.dirs.Pods(), RunDir: r.dirs.RunVolumes(), ClaimsDir: r.dirs.PersistentVolumes(),
		HostPaths: r.opts.HostPaths, Protected: r.opts.protected(), Unbindable: r.unbindable, Rootless: r.opts.Rootless,
	})
	if err == nil {
		r.volumes = sandbox.NewVolumes(set, r.opts.capacity(r.cgroups), r.index, r.opts.RefreshInterval)
	}
	return err
}

func (r *Runtime) startWorkers(ctx context.Context) {
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.workers.Go(func() { r.etc.Run(ctx) })
	r.workers.Go(func() { r.volumes.Run(ctx) })
	r.workers.Go(func() {
		if err := r.volumes.SweepClaims(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "cannot delete unfinished imports and removals of volumes", slog.Any("error", err))
		}
	})
	r.workers.Go(func() { r.garbage.Run(ctx) })
	for _, dir := range []string{r.dirs.Log, r.dirs.MemoryLogs()} {
		b := newLogBound(logBoundOptions{
			Dir: dir, Max: r.opts.LogTotalMaxSize, Memory: dir == r.dirs.MemoryLogs(), Running: r.runningLogs, Report: r.reportLoss,
			Log: r.log,
		})
		r.workers.Go(func() { b.Run(ctx) })
	}
}

// runningLogs returns the logs of all containers that have not exited.
func (r *Runtime) runningLogs(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	return record.RunningLogs(ctx, r.client)
}

// Close cancels pulls, kills commands, and stops the engine. Containers and their logs keep running. The next Start recovers them, after
// the engine has stopped.
func (r *Runtime) Close() error {
	if r.stop != nil {
		r.stop()
		r.workers.Wait()
	}
	if r.execs != nil {
		r.execs.Close()
	}
	if r.images != nil {
		r.images.Close()
	}
	err := errors.Join(r.engine.CloseMonitor(), r.cgroups.Close())
	if r.network != nil {
		err = errors.Join(err, r.network.Close())
	}
	// Before the engine releases its lock: the next daemon uses the same directories.
	return errors.Join(err, releaseMounts(r.unbindable), r.engine.Close())
}
