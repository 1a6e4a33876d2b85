// Package engine is containerd inside this process: the parts of its server that pods need, without a CRI and without
// a listener but the one through which shims report events.
//
// It owns containerd's folders, the lock on them, and the shims' processes through package shim. It knows containers
// and sandboxes, and nothing of pods. Shims and containers outlive the engine: one that is started on the same folders
// takes them up again.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/cmd/containerd/server"
	srvconfig "github.com/containerd/containerd/v2/cmd/containerd/server/config"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/version"
)

// Namespace is the containerd namespace of everything that is ours.
const Namespace = "podstead"

// maxSocketDir is the longest folder that a shim's socket fits in: its name has 64 characters, and 106 is the limit.
const maxSocketDir = 41

// Options say where the engine lives and what it runs. Root, State and ShimPath are required.
type Options struct {
	// Root is the folder of what lasts: images, snapshots, metadata. Absolute.
	Root string
	// State is the folder of what is void after a boot: bundles, sockets, runc's state. Absolute, not Root, and short:
	// at most 39 characters, because sockets lie in it.
	State string
	// ShimPath is the absolute path of the shim's program. Of shims that run already, whose program is gone, it is the
	// new program.
	ShimPath string
	// ShimEnv is added to the environment of the shims, in the form "name=value".
	ShimEnv []string
	// Runtime is the OCI runtime's program, a name or a path. Empty is runc.
	Runtime string
	// SystemdCgroup has the runtime make cgroups through systemd.
	SystemdCgroup bool
	// Log takes containerd's own warnings and errors; nil is slog.Default(). containerd has one log for each process,
	// so the last engine started decides.
	Log *slog.Logger
}

// Engine is a running containerd. It is safe for concurrent use.
type Engine struct {
	opt        Options
	server     *server.Server
	client     *client.Client
	controller sandbox.Controller
	lock       *lock
	cancel     context.CancelFunc
	away       map[string]Exit
}

// Start starts containerd, takes up the shims that run already, and returns when it is ready for use. Another process
// on the same root is an [ErrInUse].
//
// Values of ctx reach containerd, but its cancellation does not: containerd's start cannot be cancelled. Only
// [Engine.Close] ends it.
func Start(ctx context.Context, o Options) (*Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	for _, dir := range []string{o.Root, o.State} {
		if err := privateDir(dir); err != nil {
			return nil, err
		}
	}
	l, err := takeLock(filepath.Join(o.Root, "lock"))
	if err != nil {
		return nil, err
	}
	e := &Engine{opt: o, lock: l}
	ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start engine in %s: %w", o.Root, err), e.stop())
	}
	return e, nil
}

func (e *Engine) start(ctx context.Context) error {
	redirectLog(e.opt.Log)
	bundles, err := scanBundles(e.opt.State, e.opt.ShimPath)
	if err != nil {
		return err
	}
	if err := mount.SetTempMountLocation(filepath.Join(e.opt.Root, "tmpmounts")); err != nil {
		return fmt.Errorf("prepare folder for mounts: %w", err)
	}
	if _, err := mount.CleanupTempMounts(0); err != nil {
		return fmt.Errorf("clean up mounts: %w", err)
	}
	if err := sweep(e.opt.Root, e.opt.State); err != nil {
		e.opt.Log.WarnContext(ctx, "something of a former engine is left", slog.Any("error", err))
	}
	found, err := load(func() error {
		e.server, err = server.New(ctx, e.config())
		return err
	})
	if err != nil {
		return err
	}
	e.client, e.controller = found.client, found.controller
	if err := sweepSnapshots(ctx, found.cleaners); err != nil {
		e.opt.Log.WarnContext(ctx, "something of a former engine is left", slog.Any("error", err))
	}
	if err := e.server.Start(ctx); err != nil {
		return err
	}
	e.server.Wait()
	// containerd leaves it to the group, but whoever can write here can forge exits.
	if err := os.Chmod(e.ttrpcAddress(), 0o600); err != nil {
		return err
	}
	e.away, err = e.missedExits(bundles, time.Now())
	return err
}

func (e *Engine) config() *srvconfig.Config {
	// A shim that does not answer in time is taken for dead, and its containers are killed. A loaded machine is no
	// reason for that, so these are far above containerd's 5 seconds.
	const patience = "1m"
	return &srvconfig.Config{
		Version: version.ConfigVersion,
		Root:    e.opt.Root,
		State:   e.opt.State,
		Plugins: map[string]any{
			// Nothing listens here. Shims derive the names of their sockets from it.
			"io.containerd.server.v1.grpc":  map[string]any{"address": e.grpcAddress()},
			"io.containerd.server.v1.ttrpc": map[string]any{"address": e.ttrpcAddress()},
			"io.containerd.shim.v1.manager": map[string]any{"env": e.opt.ShimEnv, "socket_dir": e.socketDir()},
			// By default the writable layers of containers that are gone stay on the disk until a hundred other things have
			// changed. Those that go together are taken away together.
			"io.containerd.gc.v1.scheduler": map[string]any{"deletion_threshold": 1, "schedule_delay": "2s"},
		},
		Timeouts: map[string]string{
			"io.containerd.timeout.shim.load":     patience,
			"io.containerd.timeout.shim.cleanup":  patience,
			"io.containerd.timeout.shim.shutdown": patience,
			"io.containerd.timeout.task.state":    patience,
		},
		RequiredPlugins: []string{string(accessType) + "." + accessID, "io.containerd.server.v1.ttrpc"},
	}
}

// Client is containerd's client, in memory. Calls without a namespace are in [Namespace]. Its sandbox functions do not
// work; those of the engine do.
func (e *Engine) Client() *client.Client { return e.client }

// ShimPath is the program of the shims, an absolute path.
func (e *Engine) ShimPath() string { return e.opt.ShimPath }

// BundleDirs are the folders in which the bundles of containers and sandboxes lie, below which their roots are mounted. The engine
// lets nobody else pass through them when it starts; for containers in user namespaces, whoever starts those has to.
func (e *Engine) BundleDirs() []string {
	return []string{filepath.Join(e.opt.State, taskPlugin, Namespace), filepath.Join(e.opt.State, sandboxPlugin, Namespace)}
}

// RuntimeOptions are the options that containers are to be created with; see [client.WithRuntime]. [Sandbox.NewContainer]
// does so.
func (e *Engine) RuntimeOptions() *options.Options {
	return &options.Options{
		BinaryName:    e.opt.Runtime,
		Root:          filepath.Join(e.opt.State, "runc"),
		SystemdCgroup: e.opt.SystemdCgroup,
	}
}

// Close stops containerd and frees the folders. Shims, containers and their logs go on.
//
// It is meant for the end of the process: containerd's connections to the shims cannot be closed without having it
// take the shims for dead, so they stay until then.
func (e *Engine) Close() error { return e.stop() }

func (e *Engine) stop() error {
	var errs []error
	e.cancel()
	if e.client != nil {
		errs = append(errs, e.client.Close())
	}
	if e.server != nil {
		e.server.Stop()
	}
	errs = append(errs, e.lock.release())
	return errors.Join(errs...)
}

func (e *Engine) grpcAddress() string { return filepath.Join(e.opt.State, "engine.sock") }

func (e *Engine) socketDir() string { return filepath.Join(e.opt.State, "s") }

func (e *Engine) ttrpcAddress() string { return filepath.Join(e.opt.State, "ttrpc.sock") }

func (o *Options) check() error {
	for _, p := range []struct{ name, path string }{{"root", o.Root}, {"state", o.State}, {"shim", o.ShimPath}} {
		if !filepath.IsAbs(p.path) {
			return fmt.Errorf("start engine: %s %q is not an absolute path", p.name, p.path)
		}
	}
	if filepath.Clean(o.Root) == filepath.Clean(o.State) {
		return fmt.Errorf("start engine: root and state are the same folder, %s", o.Root)
	}
	if n := len(filepath.Join(o.State, "s")); n > maxSocketDir {
		return fmt.Errorf("start engine: state %s is %d characters too long for sockets in it", o.State, n-maxSocketDir)
	}
	if st, err := os.Stat(o.ShimPath); err != nil {
		return fmt.Errorf("start engine: shim: %w", err)
	} else if st.IsDir() || st.Mode()&0o111 == 0 {
		return fmt.Errorf("start engine: shim %s is not a program", o.ShimPath)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return nil
}

// privateDir makes a folder that nobody else may enter.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("make folder private: %w", err)
	}
	return nil
}
