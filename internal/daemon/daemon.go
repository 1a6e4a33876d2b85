// Package daemon runs the daemon. It connects container engine, supervisor and API server, starts and stops them in order, and stops an
// idle daemon that was started on demand. It makes no decisions about pods.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/hooks"
	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/metrics"
	"github.com/podstead/podstead/internal/daemon/notify"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/hostcondition"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/schedule"
	"github.com/podstead/podstead/supervisor/state"
)

const (
	// supervisorTimeout bounds the time in which the supervisor saves its state. State that is not saved is recovered from the engine.
	supervisorTimeout = 30 * time.Second
	// serverTimeout bounds the time in which requests in progress complete.
	serverTimeout = 5 * time.Second
	// clientTimeout bounds the time in which clients fetch the final states of deleted pods. A client that was killed fetches none.
	clientTimeout = 10 * time.Second
	// takeoverTimeout bounds the time in which an on-demand daemon exits to make way for this one.
	takeoverTimeout  = 45 * time.Second
	takeoverInterval = 100 * time.Millisecond
	// reservedSpace is the size of the file whose space is used if the disk is full: a state file has a few KiB, and a container needs
	// about 20 KiB to start.
	reservedSpace = 1 << 20
)

// RebootsFile is the name of the file in the state directory that has the reboots for unready pods.
const RebootsFile = "reboots.json"

// imageUseFile has when images were used, in the state directory.
const imageUseFile = "image-use.json"

// errIdle is the cause of the end of an on-demand daemon that is idle.
var errIdle = errors.New("idle")

// Runtime is the container engine of a daemon.
type Runtime interface {
	supervisor.Runtime
	// RemoveNetwork removes the pod network. It is called when the daemon stops without pods. The pod network is created again
	// for the next pod.
	RemoveNetwork(ctx context.Context) error
	probes.Execer
	server.Sessions
	podfiles.Images
	server.Attacher
	server.ContainerFiles
	server.VolumeFiles
	server.PodPorts
	// Stats measures pods, in the order of the targets.
	Stats(ctx context.Context, targets []stats.Target) []stats.Pod
	// Damaged returns the files of the engine that were damaged when it started, if containers were killed because of that.
	Damaged(ctx context.Context) []lifecycle.Damage
	// Values returns the config maps and secrets of the host. What it has decrypted is kept for all callers.
	Values() configsource.Source
	// OCIRuntime returns the OCI runtime that was selected when the engine started.
	OCIRuntime() ociruntime.Choice
	// NativeReason returns why each container has a copy of the files of its image; empty: overlayfs is used.
	NativeReason() string
	// Close stops the engine. Containers keep running.
	Close() error
}

// Options are the options of a daemon. Config, Start and Log are required.
type Options struct {
	Config *config.Config
	// Start starts the engine. It returns an [*engine.ErrInUse] if another process holds the lock of the state directory.
	Start   func(ctx context.Context, c *config.Config, log *slog.Logger) (Runtime, error)
	Version api.Version
	Log     *slog.Logger
	// Cgroup is the cgroup that the process joins, as a path from the root of the hierarchies. Empty: it stays in its cgroup.
	Cgroup string
	// Reload receives a value when the configuration must be loaded again; nil: never.
	Reload <-chan os.Signal
	// Invalid is why Config is an earlier configuration than that of the file; nil: it is that of the file.
	Invalid error
	// Load loads the configuration again. It is required with Reload.
	Load func() (*config.Config, error)
	// Listeners are the sockets that systemd has passed. Those of the configuration are used in place of new ones. The package activation
	// has a nil for each descriptor that is not a stream socket.
	Listeners []net.Listener
	// HostStopping reports whether the host is shutting down, see [HostStopping]; nil: never.
	HostStopping func(context.Context) (bool, error)
	// Ready is called when the daemon accepts requests; may be nil.
	Ready func()

	rebooter *rebootHost
	prober   *probes.Prober
	shutdown *atomic.Bool // a client has requested that all pods stop with the daemon
}

// Run runs the daemon until ctx ends, a client stops it or, if it was started on demand, it is idle. Containers keep running.
func Run(ctx context.Context, o Options) (err error) {
	if o.Config.ReadOnlySocket == o.Config.Socket {
		return fmt.Errorf("read-only socket %s: must differ from the API socket", o.Config.Socket)
	}
	if err := api.CheckSocket(o.Config.Socket); err != nil {
		return err
	}
	setGCPercent(busyPercent)
	// The engine would create the directory with mode 0700, but members of the group podstead must reach the socket in it. Everything else
	// in it is not accessible to others.
	if err := os.MkdirAll(o.Config.RunDir, 0o711); err != nil {
		return fmt.Errorf("create runtime directory: %w", err)
	}
	o.Listeners = slices.DeleteFunc(slices.Clone(o.Listeners), func(l net.Listener) bool { return l == nil })
	o.shutdown = &atomic.Bool{}
	loaded, c := o.Config, *o.Config
	c.LogDir = config.Resolve(c.LogDir) // its links belong to the administrator; later ones are not followed
	o.Config = &c
	if o.Cgroup != "" {
		defer joinCgroup(ctx, o.Cgroup, o.Config.Engine.MemoryLimit.Value(), o.Log)()
	}
	limitMemory(o.Config.Engine.MemoryLimit.Value())
	rt, err := o.takeOver(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	o.sweep(ctx) // the engine's lock is held: no other daemon runs
	crash, end := watchCrashes(ctx, o.Config.RunDir, o.Log)
	defer end()
	dirs := o.imageDirs(ctx, rt) // before the pods: they wait for archives that are known
	recorder := metrics.NewRecorder()
	boot, unclean := readBoot(ctx, o.Config.StateDir, o.Log)
	if rebooted(o.Config.StateDir, unclean) {
		unclean = ""
	}
	s, err := o.supervise(ctx, rt, recorder, crash, unclean)
	if err != nil {
		return err
	}
	defer boot.set(ctx)()
	defer func() { err = errors.Join(err, stopSupervisor(ctx, s)) }()
	defer inBackground(ctx, func(ctx context.Context) { recorder.Follow(ctx, s) })()
	defer importImages(ctx, dirs, s)()
	if crash != "" {
		s.Events().Add(event.New(api.EventDaemonCrashed, s.Now().Wall, "", event.Fields{"error": crash}))
	}
	reportLosses(rt, s)
	reportCleared(rt, s)
	reportMonitor(rt, s)
	o.restoreBundle(ctx)                      // before the pods directory and its values are read
	defer inBackground(ctx, o.rebooter.Run)() // it saves the ages of reboots
	files := podfiles.New(o.Config.Pods.Dir, s, podfiles.Options{
		MaxReplicas: int(o.Config.Pods.MaxReplicas),
		Events:      s.Events(), Log: o.Log, Histories: podfiles.NewHistoryDir(filepath.Join(o.Config.StateDir, "generations")),
		Values: rt.Values(), Images: rt, Scheduled: o.hadSchedules(),
	})
	unfollow := follow(ctx, files)
	schedules := o.newSchedules(s, files)
	stopSchedules := inBackground(ctx, schedules.Run)
	defer stopSchedules()
	defer inBackground(ctx, func(ctx context.Context) { o.undoBundles(ctx, s, files, imagesOf(rt)) })()
	host := o.newStorage(rt, s, files)
	o.closeUnused(ctx)
	r := newReloader(&o, loaded, rt, s, host, dirs)
	defer o.sendEvents(ctx, s, r)()
	if o.Invalid != nil {
		r.emitInvalid(o.Invalid)
	} else {
		o.keepValid(ctx, loaded)
	}
	err = errors.Join(o.serve(ctx, &services{rt, s, files, schedules, host, o.newMetrics(ctx, rt, s, recorder)}, r), unfollow())
	stopSchedules() // no pod is added while pods are stopped
	left, shutDownErr := o.shutDown(ctx, s, boot, r.config.Load().Pods.ShutdownGracePeriod.Duration())
	err = errors.Join(err, shutDownErr)
	if left == 0 {
		removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
		defer cancel()
		if removeErr := rt.RemoveNetwork(removing); s.Count() == 0 {
			err = errors.Join(err, removeErr)
		} else if removeErr != nil { // systemd would start a daemon that fails again
			o.Log.LogAttrs(removing, slog.LevelWarn, "the pod network stays", slog.Any("error", removeErr))
		}
	}
	return err
}

// sweep removes what a crash or a power loss has left of files that this daemon writes one by one. Who reads a directory of files of state
// sweeps it.
func (o *Options) sweep(ctx context.Context) {
	dir := o.Config.StateDir
	errs := []error{atomicfile.SweepOf(record.Dirs{State: dir}.Users()), atomicfile.SweepOf(filepath.Join(o.Config.RunDir, lifeFile))}
	for _, name := range []string{bootFile, RebootsFile, imageUseFile, config.ValidName} {
		errs = append(errs, atomicfile.SweepOf(filepath.Join(dir, name)))
	}
	if err := atomicfile.Sweep(filepath.Join(dir, notify.Dir)); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove temporary files", slog.Any("error", err))
	}
}

// inBackground runs a function. The returned function ends its context and waits for it.
func inBackground(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// schedulesDir is the directory of the states of schedules.
func (o *Options) schedulesDir() string { return filepath.Join(o.Config.StateDir, "schedules") }

// hadSchedules reports whether there were schedules when the daemon before ended.
func (o *Options) hadSchedules() bool {
	entries, _ := os.ReadDir(o.schedulesDir()) // an error is found again when the states are read
	return len(entries) > 0
}

// newSchedules returns the schedules of the pods directory.
func (o *Options) newSchedules(s *supervisor.Supervisor, files *podfiles.Set) *schedule.Schedules {
	host, err := os.ReadFile("/etc/machine-id")
	if err != nil { // in a container, for example
		name, _ := os.Hostname() // without either, hosts have the same delays
		host = []byte(name)
	}
	return schedule.New(files, s, schedule.Options{
		Events: s.Events(), States: schedule.NewStates(o.schedulesDir()),
		Host: strings.TrimSpace(string(host)), Log: o.Log,
	})
}

// follow runs the pods of the pods directory. The returned function ends that; the pods keep running.
func follow(ctx context.Context, files *podfiles.Set) (unfollow func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- files.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// takeOver starts the engine. If an on-demand daemon holds the lock and this daemon is a service, it stops the other daemon and retries.
// The other daemon may not accept requests yet: while systemd restarts a service that was killed, a command may start a daemon.
func (o *Options) takeOver(ctx context.Context) (Runtime, error) {
	rt, err := o.Start(ctx, o.Config, o.Log)
	if !InUse(err) || o.Version.OnDemand {
		return rt, err
	}
	timeout := time.NewTimer(takeoverTimeout)
	defer timeout.Stop()
	retry := time.NewTicker(takeoverInterval)
	defer retry.Stop()
	stopping := false
	for InUse(err) {
		if !stopping {
			service := false
			if stopping, service = o.stopOther(ctx, err); service {
				return nil, err
			}
		}
		select {
		case <-retry.C:
			rt, err = o.Start(ctx, o.Config, o.Log)
		case <-timeout.C:
			return nil, fmt.Errorf("take over from another daemon: %w", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return rt, err
}

// stopOther stops the other daemon, which is the cause of the error, if it was started on demand. It reports whether that daemon is
// stopping, or is a service. Both are false if it does not respond.
func (o *Options) stopOther(ctx context.Context, err error) (stopping, service bool) {
	if held, ok := errors.AsType[*engine.ErrInUse](err); ok && o.activated(o.Config.Socket) != nil {
		return stopHolder(held) // a connection would reach the socket of this daemon
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	other := client.New(o.Config.Socket, "podstead daemon")
	defer other.Close()
	v, err := other.Version(ctx)
	if err != nil {
		return false, false
	}
	return v.OnDemand && other.StopDaemon(ctx) == nil, !v.OnDemand
}

// supervise starts the supervisor and recovers its pods, after a crash of the last daemon, or after a boot that ended without a shutdown.
func (o *Options) supervise(
	ctx context.Context, rt Runtime, recorder *metrics.Recorder, crash, unclean string,
) (*supervisor.Supervisor, error) {
	store, err := state.NewDir(filepath.Join(o.Config.StateDir, "pods"))
	if err != nil {
		return nil, err
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		return nil, err
	}
	checkpoints, err := state.NewCheckpointDir(filepath.Join(o.Config.RunDir, "pods"))
	if err != nil {
		return nil, err
	}
	journal, err := event.NewDirJournal(filepath.Join(o.Config.StateDir, "events"))
	if err != nil {
		return nil, err
	}
	space, err := disk.NewReserve(filepath.Join(o.Config.StateDir, "reserve"), reservedSpace)
	if err != nil {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "no disk space is reserved for the state of pods", slog.Any("error", err))
	}
	suspects, err := state.NewQuarantine(filepath.Join(o.Config.StateDir, "quarantine"), filepath.Join(o.Config.RunDir, "handling"))
	if err != nil {
		return nil, err
	}
	suspects.Version = o.Version.Version
	o.rebooter = newReboots(filepath.Join(o.Config.StateDir, RebootsFile), clock, int(o.Config.Reboot.MaxPerDay), o.Config.Reboot.Command)
	o.prober = probes.New(rt, clock, probes.Options{Observe: recorder.Probe})
	policy := o.Config.Policy.Admission()
	policy.Protected, policy.Rootless = o.Config.OwnPaths(), o.Config.Rootless()
	s := supervisor.New(ctx, supervisor.Options{
		Runtime: recorder.Runtime(rt), Prober: o.prober, Hooks: recorder.Hooks(hooks.New(rt, nil)), Conditions: hostcondition.New(),
		Rebooter: o.rebooter, UncleanBoot: unclean,
		Store: store, Space: space, Checkpoints: checkpoints, Journal: journal, Clock: clock, Log: o.Log,
		MaxParallelStarts: int(o.Config.Pods.MaxParallelStarts),
		Policy:            policy, Finished: finishedPods(o.Config), Quarantine: suspects, Crash: crash, Damaged: rt.Damaged(ctx),
		LogEvents: o.eventLog(),
	})
	if err := s.Recover(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("recover pods: %w", err), stopSupervisor(ctx, s))
	}
	return s, nil
}

func stopSupervisor(ctx context.Context, s *supervisor.Supervisor) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), supervisorTimeout)
	defer cancel()
	return s.Leave(ctx)
}
