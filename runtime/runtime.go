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
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/client"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/internal/proc"
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
	classes    ociruntime.Classes
	// nativeReason is why containers have copies of the files of images; empty: they are in overlays.
	nativeReason string

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

	cleared receiver[clearing]

	monitorReports *receiver[engine.MonitorReport]

	lossReport atomic.Pointer[func(LogLoss)] // see OnLogsRemoved
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

// ResizePod sets the requests and limits of a pod and of its running containers, see [container.Service.Resize], and the size of its
// volumes in memory. Nothing is changed if the files of a volume would not fit. What is used of the cgroups does not show that: the cgroup
// that has created a file pays for it, which may be that of the daemon or of an earlier sandbox, and pages may have been swapped out.
func (r *Runtime) ResizePod(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.ResizePod) error {
	ctx = engine.Context(ctx)
	unlock, err := r.podLocks.Lock(ctx, uid)
	if err != nil {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	defer unlock()
	if _, err := sandbox.Load(ctx, r.engine, r.dirs, uid, a.Sandbox); err != nil {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	if err := r.volumes.CheckMemory(ctx, uid, pod); err != nil {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	if err := r.containers.Resize(ctx, uid, pod); err != nil {
		return err
	}
	return engine.Failure(ctx, lifecycle.FailureRetry, "", r.volumes.ResizeMemory(ctx, uid, pod))
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

// WatchDevices reports the devices of a container that are unplugged and plugged in, see [container.Service.WatchDevices].
func (r *Runtime) WatchDevices(ctx context.Context, uid string, o lifecycle.DeviceOrder, report func(lifecycle.DeviceChange)) error {
	return r.containers.WatchDevices(ctx, uid, o, report)
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

// Volumes returns the persistent volumes, by name, with the project that each belongs to.
func (r *Runtime) Volumes(ctx context.Context) (map[string]string, error) {
	list, err := r.volumes.ListClaims(ctx)
	projects := make(map[string]string, len(list))
	for _, c := range list {
		projects[c.Name] = c.Project
	}
	return projects, err
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

// SetRuntimeClasses replaces the OCI runtimes of pods with a runtime class: their names or absolute paths, by the names of the classes. A
// pod keeps its OCI runtime until its next sandbox.
func (r *Runtime) SetRuntimeClasses(programs map[string]string) { r.classes.Set(programs) }

// OCIRuntime is the OCI runtime of new containers without a runtime class, which does not change.
func (r *Runtime) OCIRuntime() ociruntime.Choice { return r.ociRuntime }

// NativeReason returns why each container has a copy of the files of its image; empty: overlayfs is used.
func (r *Runtime) NativeReason() string { return r.nativeReason }

// Values are the config maps and secrets of the host.
func (r *Runtime) Values() configsource.Source { return r.config }

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
	groups, err := o.cgroups(false)
	if err != nil {
		return nil, err
	}
	return o.capacity(groups).Allocatable(), nil
}

// DiagnoseNetwork checks the network of a runtime for faults, whether the runtime is running or not. It changes nothing.
func DiagnoseNetwork(ctx context.Context, o Options) ([]network.Finding, error) {
	bootID, err := proc.BootID()
	if err != nil {
		return nil, err
	}
	return sandbox.DiagnoseNetwork(ctx, o.withDefaults().network(bootID))
}
