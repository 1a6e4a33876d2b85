// Package runtime runs pods on an embedded containerd. It implements the supervisor's Runtime.
//
// It owns everything that a pod is on the host (sandboxes, containers, files, logs and cgroups) and the container engine. It makes no
// decisions: it carries out actions, finds the results of actions before a restart, and classifies errors as [lifecycle.Failure]. It keeps
// no state of its own. Everything that is needed to find a pod again is in the records of the engine, see package record, which also
// describes the files and directories.
//
// [Runtime] composes the packages below this one, each of which provides one part of a pod. References run in this direction only:
//
//	runtime → container → sandbox → exit → record, engine, image, oci, …
package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/client"

	"github.com/podstead/podstead/internal/bootid"
	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/container"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exec"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/files"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Runtime is the supervisor's Runtime. It is safe for concurrent use.
type Runtime struct {
	opts    Options
	dirs    record.Dirs
	log     *slog.Logger
	host    oci.Host
	bootID  string
	engine  *engine.Engine
	client  *client.Client
	cgroups podcgroup.Groups
	config  configsource.Source

	ociRuntime ociruntime.Choice

	images       *image.Store
	imageVolumes *container.ImageVolumes
	users        *sandbox.Users
	exits        *exit.Recorder
	execs        *exec.Runner
	garbage      *container.LayerCollector
	network      *sandbox.Network
	etc          *sandbox.EtcFiles
	volumes      *sandbox.Volumes
	sandboxes    *sandbox.Service
	containers   *container.Service
	files        *files.Service
	stats        *stats.Collector

	index    *sandbox.Index
	podLocks guard.KeyedMutex // by UID; held while a sandbox is started or removed, and while a pod is removed
	workers  sync.WaitGroup   // run until stop is called
	stop     context.CancelFunc

	unbindable []string // directories that contain the mounts of pods

	cleared clearings

	lossReport atomic.Pointer[func(LogLoss)] // see OnLogsRemoved
}

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
	bootID, err := bootid.Read()
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	cgroups, err := podcgroup.New(o.CgroupDriver, o.CgroupRoot, host.UnifiedCgroups)
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	e, err := engine.Start(ctx, engine.Options{
		Root:          o.dirs().Engine(),
		State:         o.dirs().EngineRun(),
		Roots:         o.dirs().Roots(),
		ShimPath:      o.ShimPath,
		Runtime:       o.RuntimeBinary,
		SystemdCgroup: cgroups.Systemd(),
		Log:           o.Logger,
	})
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		opts: o, dirs: o.dirs(), log: o.Logger, host: host, bootID: bootID, cgroups: cgroups,
		config: configsource.Source{Dir: o.ConfigDir, Credentials: o.CredentialsDir},
		engine: e, client: e.Client(), index: sandbox.NewIndex(),
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

// compose creates the parts of the runtime, and recovers the state of an earlier daemon. After an error, the caller calls Close.
func (r *Runtime) compose(ctx context.Context) error {
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
	r.opts.Images.Collect = r.engine.CollectGarbage
	r.images = image.New(r.client, r.opts.Images)
	r.imageVolumes = container.NewImageVolumes(r.client.SnapshotService(snapshotter), r.images, r.dirs)
	r.exits = exit.NewRecorder(r.client, r.engine, r.cgroups, r.dirs, r.bootID, r.log)
	r.execs = exec.New(exec.Config{
		Client: r.client, Cgroups: r.cgroups, Bundles: r.dirs.EngineRun(), Dir: r.dirs.Exec(),
		Environment: container.NewProcessFiles(r.dirs).Environment,
		Exited:      r.exits.Exited, Session: r.engine.ExecSession, AwaitResponse: r.engine.AwaitResponse, Log: r.log,
	})
	r.garbage = container.NewLayerCollector(r.engine.CollectGarbage, container.Layers{
		Snapshots: r.client.SnapshotService(cmp.Or(snapshotter, "overlayfs")), Dir: r.engine.LayerDir(cmp.Or(snapshotter, "overlayfs")),
	}, r.log)
	warnAboutHost(r.host, r.opts.PidsLimit, r.log)
	remaps := sandbox.CanRemap(ctx, r.client, snapshotter, r.log)
	r.users = sandbox.NewUsers(r.dirs, remaps)
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
	r.etc = sandbox.NewEtcFiles(r.dirs, r.network, r.index, r.log)
	evictions := stats.NewDiskMonitor(r.client, r.volumes, r.dirs, r.opts.UsageInterval, r.log)
	r.stats = stats.NewCollector(r.cgroups, r.dirs, evictions, r.log)
	r.sandboxes = sandbox.New(sandbox.Config{
		Client: r.client, Engine: r.engine, Dirs: r.dirs, Cgroups: r.cgroups, Host: r.host, PidsLimit: r.opts.PidsLimit,
		Exits: r.exits, Etc: r.etc, Volumes: r.volumes, Users: r.users, Network: r.network, Index: r.index, Locks: &r.podLocks,
		Evictions: evictions, Cleared: r.cleared.add,
	})
	r.containers = container.New(container.Config{
		Client: r.client, Engine: r.engine, Images: r.images, Snapshotter: snapshotter, Dirs: r.dirs, Cgroups: r.cgroups,
		Host: r.host, PidsLimit: r.opts.PidsLimit, BootID: r.bootID, ConfigDir: r.opts.ConfigDir, Values: r.config, Exits: r.exits,
		Etc:     r.etc,
		Volumes: r.volumes, ImageVolumes: r.imageVolumes, Users: r.users, Network: r.network,
		AppArmor: container.KernelAppArmor(), Garbage: r.garbage, Logs: r.opts.logs(),
	})
	r.files, err = files.New(files.Config{
		Client: r.client, Snapshotter: snapshotter, Dir: r.dirs.Files(), Task: r.exits.Task, ProcessDir: r.cgroups.ProcessDir,
		IDs:     r.users.Find,
		Volumes: r.containers.Volumes,
	})
	return err
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

// OnCleared sets the function that receives what was killed and removed in the cgroup of a pod because it belonged to none of the pod's
// containers. The function is called at once with what was found at the start.
func (r *Runtime) OnCleared(report func(uid string, cleared podcgroup.Cleared)) {
	r.cleared.receive(report)
}

// OnLogsRemoved sets the function that receives what containers lose because of [Options.LogTotalMaxSize], at a bounded rate.
func (r *Runtime) OnLogsRemoved(report func(LogLoss)) { r.lossReport.Store(&report) }

func (r *Runtime) reportLoss(l LogLoss) bool {
	report := r.lossReport.Load()
	if report != nil {
		(*report)(l)
	}
	return report != nil
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
	err := r.cgroups.Close()
	if r.network != nil {
		err = errors.Join(err, r.network.Close())
	}
	// Before the engine releases its lock: the next daemon uses the same directories.
	return errors.Join(err, releaseMounts(r.unbindable), r.engine.Close())
}

// StartSandbox starts the sandbox of a pod, or finds it, see [sandbox.Service.Start].
func (r *Runtime) StartSandbox(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox,
) (lifecycle.SandboxStarted, error) {
	return r.sandboxes.Start(ctx, uid, pod, a)
}

// WaitSandbox returns when a sandbox has stopped, or with a message when its pod must be evicted, see [sandbox.Service.Wait].
func (r *Runtime) WaitSandbox(ctx context.Context, uid string, pod *spec.Pod, number int) (evicted string, err error) {
	return r.sandboxes.Wait(ctx, uid, pod, number)
}

// WatchShim reports when the shim of a sandbox stops responding, and when it responds again, see [sandbox.Service.WatchShim].
func (r *Runtime) WatchShim(ctx context.Context, uid string, number int, report func(responds bool)) error {
	return r.sandboxes.WatchShim(ctx, uid, number, report)
}

// RemoveSandbox kills the containers in a sandbox and removes it, see [sandbox.Service.Remove].
func (r *Runtime) RemoveSandbox(ctx context.Context, uid string, number int) error {
	return r.sandboxes.Remove(ctx, uid, number)
}

// StartContainer creates and starts a container, or finds it, see [container.Service.Start].
func (r *Runtime) StartContainer(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer,
) (lifecycle.ContainerStarted, error) {
	return r.containers.Start(ctx, uid, pod, a)
}

// WaitContainer returns when a container has exited, see [exit.Recorder.WaitContainer].
func (r *Runtime) WaitContainer(ctx context.Context, uid string, ref lifecycle.Ref) (lifecycle.Exit, time.Time, error) {
	return r.exits.WaitContainer(ctx, uid, ref)
}

// StopContainer sends the stop signal to a container, see [container.Service.Stop].
func (r *Runtime) StopContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error {
	return r.containers.Stop(ctx, uid, pod, ref)
}

// KillContainer sends SIGKILL to every process of a container, see [container.Service.Kill]. If the shim of the container does not
// respond, see [sandbox.Service.KillContainer].
func (r *Runtime) KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error {
	if killed, err := r.sandboxes.KillContainer(ctx, uid, ref); killed || err != nil {
		return err
	}
	return r.containers.Kill(ctx, uid, ref)
}

// RemoveContainer removes a run that has exited, and older runs of its container, see [container.Service.Remove].
func (r *Runtime) RemoveContainer(ctx context.Context, uid string, _ *spec.Pod, ref lifecycle.Ref) error {
	return r.containers.Remove(ctx, uid, ref)
}

// Exec runs a command in a container, see [exec.Runner.Exec].
func (r *Runtime) Exec(
	ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int,
) (code int, output []byte, err error) {
	return r.execs.Exec(ctx, uid, ref, command, timeout, max)
}

// Session runs a command in a container for a client, see [exec.Runner.Session].
func (r *Runtime) Session(ctx context.Context, uid string, ref lifecycle.Ref, c session.Command) (code int, err error) {
	return r.execs.Session(ctx, uid, ref, c)
}

// Volumes returns the names of the persistent volumes, sorted.
func (r *Runtime) Volumes(ctx context.Context) ([]string, error) {
	list, err := r.volumes.ListClaims(ctx)
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names, err
}

// WatchVolumes reports why the volumes of a pod are not updated, see [sandbox.Volumes.Watch].
func (r *Runtime) WatchVolumes(ctx context.Context, uid string, report func(stale string)) error {
	return r.volumes.Watch(ctx, uid, report)
}

// RemoveVolume deletes a persistent volume and its data. The caller makes sure that no pod uses it.
func (r *Runtime) RemoveVolume(ctx context.Context, name string) error {
	return r.volumes.RemoveClaim(ctx, name)
}

// ExportVolume writes the files of a persistent volume to a tar stream.
func (r *Runtime) ExportVolume(ctx context.Context, name string, w io.Writer) (filecopy.Result, error) {
	return r.volumes.ExportClaim(ctx, name, w)
}

// ImportVolume creates a persistent volume with the files of a tar stream, see [volume.Set.ImportClaim].
func (r *Runtime) ImportVolume(
	ctx context.Context, name string, archive io.Reader, replace bool, free func() error,
) (filecopy.Result, error) {
	return r.volumes.ImportClaim(ctx, name, archive, replace, free)
}

// Stats measures what pods use, see [stats.Collector.Collect].
func (r *Runtime) Stats(ctx context.Context, targets []stats.Target) []stats.Pod {
	return r.stats.Collect(engine.Context(ctx), targets)
}

// ReadStats measures what pods use, see [stats.Collector.Read].
func (r *Runtime) ReadStats(ctx context.Context, targets []stats.Target) []stats.Pod {
	return r.stats.Read(engine.Context(ctx), targets)
}

// CheckEngine returns nil if the container engine can read its records. It may hang with the disk.
func (r *Runtime) CheckEngine(ctx context.Context) error {
	_, err := r.client.NamespaceService().List(engine.Context(ctx))
	return err
}

// RemoveNetwork removes the bridge and the rules of the network, if no pod is connected.
func (r *Runtime) RemoveNetwork(ctx context.Context) error { return r.network.Remove(ctx) }

// Allocatable returns what pods of a runtime can request together, whether the runtime is running or not.
func Allocatable(o Options) (spec.ResourceList, error) {
	o = o.withDefaults()
	groups, err := podcgroup.New(o.CgroupDriver, o.CgroupRoot, false)
	if err != nil {
		return nil, err
	}
	return o.capacity(groups).Allocatable(), nil
}

// DiagnoseNetwork checks the network of a runtime for faults, whether the runtime is running or not. It changes nothing.
func DiagnoseNetwork(ctx context.Context, o Options) ([]network.Finding, error) {
	bootID, err := bootid.Read()
	if err != nil {
		return nil, err
	}
	return sandbox.DiagnoseNetwork(ctx, o.withDefaults().network(bootID))
}
