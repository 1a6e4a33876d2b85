// Package engine runs the parts of containerd that pods need inside this process. There is no CRI, and the only listener is the
// one to which shims report events.
//
// The package owns containerd's directories, the lock on them and, through package shim, the shim processes. It manages
// containers and sandboxes and has no notion of pods. Shims and containers outlive the engine. An engine that starts on the same
// directories reconnects to them.
//
// It also has what every call to the engine needs: a context with its namespace and a timeout ([WithTimeout]), and the
// classification of errors as [lifecycle.Failure] ([Failure]).
//
// Files named adopt make it possible to adopt running containers although the engine's metadata is damaged: they keep a copy of the
// records of containers and sandboxes in the directory for runtime state, and rebuild the metadata from it and from the records of the
// snapshotters. They end no process: the caller ends the containers if that fails.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/mount"
	shimmanager "github.com/containerd/containerd/v2/core/runtime/v2"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/pkg/timeout"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/runtime/shim"
)

// Namespace is the containerd namespace of all objects that Podstead creates.
const Namespace = "podstead"

// maxSocketDir is the maximum length of the directory for shim sockets: a socket path has at most 106 characters, and the name
// takes 64 and a slash.
const maxSocketDir = 41

// stopTimeout bounds the wait for a garbage collection, which unlinks files, when the engine stops.
const stopTimeout = 2 * time.Second

// Options configure an engine. Root, State and MonitorPath are required.
type Options struct {
	// Root is the absolute path of the directory for persistent data: images, snapshots, metadata.
	Root string
	// State is the absolute path of the directory for runtime state, cleared at boot: bundles, sockets, runc's state. It must
	// differ from Root and have at most 39 characters, because it contains sockets.
	State string
	// Roots contains the root file systems that are not in bundles: those of specifications with an absolute path "<Roots>/<ID>/rootfs".
	// Empty means that there are none.
	Roots string
	// ShimPath is the absolute path of the program that cleans up after shims of earlier versions. It replaces their own program, if that
	// no longer exists. Empty means that it is not installed.
	ShimPath string
	// MonitorPath is the absolute path of the monitor's program.
	MonitorPath string
	// MonitorCgroup is the cgroup in which the monitor is started, relative to the root of the cgroup hierarchies. It is created, and
	// removed with the monitor. Empty means that of this process, from which PlaceMonitor moves it; nil: it stays there.
	MonitorCgroup string
	PlaceMonitor  func(ctx context.Context, pids ...int) error
	// WithoutCgroups is true if there can be containers without cgroups. Each of them has a PID namespace of its own.
	WithoutCgroups bool
	// ReportMonitor is called with changes of the monitor. It must not block. Nil means that they are only logged.
	ReportMonitor func(MonitorReport)
	// Runtime is the name or path of the OCI runtime's binary, until [Engine.SetRuntime] is called. The default is runc.
	Runtime string
	// Classes are the names or paths of other OCI runtimes that may have created containers, see [SandboxOptions].
	Classes []string
	// SystemdCgroup makes the OCI runtime create cgroups through systemd.
	SystemdCgroup bool
	// Log receives containerd's warnings and errors. The default is slog.Default(). containerd has one logger per process, so the
	// last engine that starts determines it.
	Log *slog.Logger
}

// Engine is a running containerd. It is safe for concurrent use.
type Engine struct {
	opt Options

	userNamespaces string // the OCI runtime of containers with a user namespace; "": that of all

	plugIns    plugInSet
	client     *client.Client
	controller sandbox.Controller
	shims      *shimmanager.ShimManager
	records    *recordCopy
	collector  *garbageCollector
	link       *link    // to the monitor
	unswept    []string // see openMonitor
	aside      aside
	reported   reported
	lock       *lock
	cancel     context.CancelFunc
	missed     map[string]Exit
	damaged    []DamageReport
	saver      chan struct{} // closed when the list of images is no longer written
}

// Start starts containerd, reconnects to running shims and returns when the engine is ready. If another process uses the same
// root, the error is an [ErrInUse].
//
// Values of ctx reach containerd, its cancellation does not: containerd's start cannot be cancelled. Only [Engine.Close] stops
// the engine.
func Start(ctx context.Context, o Options) (*Engine, error) {
	if err := errors.Join(o.check(), o.checkPrograms()); err != nil {
		return nil, err
	}
	for _, dir := range []string{o.Root, o.State} {
		if err := privateDir(dir); err != nil {
			return nil, err
		}
	}
	l, err := takeLock(LockPath(o.Root))
	if err != nil {
		return nil, err
	}
	e := &Engine{
		opt: o, lock: l, aside: aside{loaded: map[string]chan struct{}{}}, reported: reported{ids: map[string]bool{}},
	}
	ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start engine in %s: %w", o.Root, err), e.stop())
	}
	return e, nil
}

func (e *Engine) start(ctx context.Context) error {
	redirectLog(e.opt.Log)
	for _, dir := range []string{e.opt.Root, DamageJournal(e.opt.Root).Dir} { // a power loss leaves what was being written
		if err := atomicfile.Sweep(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.opt.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove temporary files", slog.Any("error", err))
		}
	}
	if err := restoreBundles(e.opt.State); err != nil {
		return err
	}
	if err := e.repair(ctx); err != nil {
		return err
	}
	e.endLostShims(ctx)
	bundles, err := scanBundles(e.opt.State, e.opt.ShimPath)
	if err != nil {
		return err
	}
	if err := mount.SetTempMountLocation(filepath.Join(e.opt.Root, "tmpmounts")); err != nil {
		return fmt.Errorf("prepare directory for temporary mounts: %w", err)
	}
	if _, err := mount.CleanupTempMounts(0); err != nil {
		return fmt.Errorf("clean up temporary mounts: %w", err)
	}
	e.sweepLeftovers(ctx)
	if err := e.setAsideUnresponsive(ctx); err != nil {
		return err
	}
	setTimeouts()
	var found access
	if err := noPanic(func() error {
		e.plugIns, found, err = e.load(ctx)
		return err
	}); err != nil {
		return err
	}
	e.client, e.controller, e.shims, e.records, e.collector = found.client, found.controller, found.shims, found.records, found.collector
	if err := e.openMonitor(ctx, found); err != nil {
		return err
	}
	if err := e.copyRecords(ctx); err != nil {
		e.opt.Log.WarnContext(ctx, "cannot copy the records of containers; if they are damaged, containers are restarted",
			slog.Any("error", err))
	}
	if err := e.keepImages(ctx); err != nil {
		return err
	}
	if err := sweepSnapshots(ctx, found.cleaners); err != nil {
		e.opt.Log.WarnContext(ctx, "cannot remove leftovers of a previous engine", slog.Any("error", err))
	}
	if err := e.plugIns.start(ctx); err != nil {
		return err
	}
	// containerd lets the group write to the socket, but a writer can forge exit events.
	if err := os.Chmod(e.ttrpcAddress(), 0o600); err != nil {
		return err
	}
	if e.missed, err = e.missedExits(bundles, time.Now()); err != nil {
		return err
	}
	e.loadAside(ctx)
	return e.loadMonitored(ctx)
}

// sweepLeftovers removes what a previous engine has left. What cannot be removed does not prevent the start.
func (e *Engine) sweepLeftovers(ctx context.Context) {
	if err := sweep(e.opt.Root, e.opt.State); err != nil {
		e.opt.Log.WarnContext(ctx, "cannot remove leftovers of a previous engine", slog.Any("error", err))
	}
	if err := sweepIngests(ctx, e.opt.Root); err != nil {
		e.opt.Log.WarnContext(ctx, "cannot remove partial content of a previous engine", slog.Any("error", err))
	}
	sweepRunc(ctx, e.opt)
	if err := sweepRoots(e.opt.Roots, e.opt.State); err != nil {
		e.opt.Log.WarnContext(ctx, "cannot remove root file systems of a previous engine", slog.Any("error", err))
	}
}

// setTimeouts sets containerd's timeouts for shims. containerd kills the containers of a shim that does not answer in time. A host under
// load must not cause that, so they are far above the default of 5 seconds. Shims that do not respond are not loaded, see
// setAsideUnresponsive.
func setTimeouts() {
	for _, name := range []string{"shim.load", "shim.cleanup", "shim.shutdown", "task.state"} {
		timeout.Set("io.containerd.timeout."+name, time.Minute)
	}
}

// Client is containerd's in-memory client. Calls without a namespace use [Namespace]. Its sandbox functions do not work. Use
// those of the engine.
func (e *Engine) Client() *client.Client { return e.client }

// CollectGarbage removes what no record refers to, such as the layers of deleted containers, if something was removed since the last time.
// It blocks until that is gone from the disk. Some seconds after a removal, the engine does this by itself.
func (e *Engine) CollectGarbage(ctx context.Context) error { return e.collector.Collect(ctx) }

// MonitorPath is the absolute path of the monitor's program.
func (e *Engine) MonitorPath() string { return e.opt.MonitorPath }

// SetRuntime sets the OCI runtime of the containers and sandboxes that are created afterwards, and that of containers that are created with
// [Sandbox.WithUserNamespace], unless the sandbox has its own. Existing ones keep the one that created them, which is recorded in their
// bundle. It must be called before any other method is.
func (e *Engine) SetRuntime(program, forUserNamespaces string) {
	e.opt.Runtime, e.userNamespaces = program, forUserNamespaces
}

// ExecSession returns the session of a command that was started in a container, or 0 if the command leads one.
func (e *Engine) ExecSession(id, execID string) int {
	if c, ours := e.link.get(id); ours {
		return sessionOf(c, execID)
	}
	text, err := os.ReadFile(shim.SessionFile(filepath.Join(e.opt.State, taskPlugin, Namespace, id), execID))
	if err != nil {
		return 0 // runc
	}
	session, err := strconv.Atoi(string(text))
	if err != nil {
		return 0
	}
	return session
}

// runtimeOptions are the options to create containers with an OCI runtime; "": that of [Engine.SetRuntime]. See [client.WithRuntime].
func (e *Engine) runtimeOptions(program string) *options.Options {
	return &options.Options{
		BinaryName:    cmp.Or(program, e.opt.Runtime),
		Root:          filepath.Join(e.opt.State, "runc"),
		SystemdCgroup: e.opt.SystemdCgroup,
	}
}

// Close stops containerd and releases the directories. Shims, containers and their logs keep running.
//
// Call it at the end of the process: containerd's connections to the shims stay open until then, because closing them makes
// containerd treat the shims as dead.
func (e *Engine) Close() error {
	e.markClean()
	return e.stop()
}

func (e *Engine) stop() error {
	var errs []error
	if e.collector != nil {
		if err := e.collector.Stop(stopTimeout); err != nil {
			e.opt.Log.Warn("cannot end the container engine in time", slog.Any("error", err))
		}
	}
	e.cancel()
	e.aside.loaders.Wait()
	e.awaitSaver()
	if e.client != nil {
		errs = append(errs, e.client.Close())
	}
	errs = append(errs, e.CloseMonitor())
	if e.plugIns.Set != nil {
		errs = append(errs, e.plugIns.close())
	}
	if e.records != nil {
		errs = append(errs, e.records.Close())
	}
	errs = append(errs, e.lock.release())
	return errors.Join(errs...)
}

func (e *Engine) grpcAddress() string { return filepath.Join(e.opt.State, "engine.sock") }

func (e *Engine) socketDir() string { return filepath.Join(e.opt.State, "s") }

func (e *Engine) ttrpcAddress() string { return filepath.Join(e.opt.State, "ttrpc.sock") }

func (o *Options) check() error {
	for _, p := range []struct{ name, path string }{{"root", o.Root}, {"state", o.State}} {
		if !filepath.IsAbs(p.path) {
			return fmt.Errorf("start engine: %s %q must be an absolute path", p.name, p.path)
		}
	}
	if filepath.Clean(o.Root) == filepath.Clean(o.State) {
		return fmt.Errorf("start engine: root and state must be different directories, both are %s", o.Root)
	}
	if n := len(filepath.Join(o.State, "s")); n > maxSocketDir {
		return fmt.Errorf("start engine: state %s must be %d characters shorter, because it contains sockets", o.State, n-maxSocketDir)
	}
	o.Runtime = cmp.Or(o.Runtime, "runc")
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return nil
}

// checkPrograms returns an error if a program is not an executable file.
func (o *Options) checkPrograms() error {
	for _, p := range []struct{ name, path string }{{"shim", o.ShimPath}, {"monitor", o.MonitorPath}} {
		if p.path == "" && p.name == "shim" {
			continue
		}
		if !filepath.IsAbs(p.path) {
			return fmt.Errorf("start engine: %s %q must be an absolute path", p.name, p.path)
		}
		if st, err := os.Stat(p.path); err != nil {
			return fmt.Errorf("start engine: %s: %w", p.name, err)
		} else if st.IsDir() || st.Mode()&0o111 == 0 {
			return fmt.Errorf("start engine: %s %s is not an executable file", p.name, p.path)
		}
	}
	return nil
}

// privateDir creates a directory that only its owner can enter.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("set directory mode: %w", err)
	}
	return nil
}
