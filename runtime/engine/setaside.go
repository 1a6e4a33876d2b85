package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
)

// containerd loads every shim before it serves anything, waits for each of them, and kills the containers of one that does not
// respond in time. The engine therefore asks all shims before, at the same time. It sets the bundles of those that do not respond
// aside, where containerd does not load them, and loads them when they respond.
//
// A bundle that is set aside is in <state>/unresponsive/<sandbox>/<namespace>/<ID>, and a symbolic link in its place refers to it.
// The shim, the OCI runtime and their files are thus found under the paths that they know, and containerd ignores links.

// asideDir is the directory in State that contains the bundles that are set aside.
const asideDir = "unresponsive"

// checkTimeout is the time for a shim to respond before it is set aside.
const checkTimeout = 5 * time.Second

// aside is the set of sandboxes that are set aside.
type aside struct {
	mu      sync.Mutex
	loaded  map[string]chan struct{} // by ID of the sandbox; closed when containerd has loaded it
	loaders sync.WaitGroup
}

// get returns the channel that is closed when a sandbox is loaded; nil: it is not set aside.
func (a *aside) get(id string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.loaded[id]
}

func (a *aside) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.loaded[id])
	delete(a.loaded, id)
}

// setAsideUnresponsive sets aside the sandboxes whose shims do not respond. It must run before containerd starts.
func (e *Engine) setAsideUnresponsive(ctx context.Context) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	dirs, err := filepath.Glob(filepath.Join(e.opt.State, sandboxPlugin, Namespace, "[^.]*"))
	if err != nil {
		return err
	}
	var checks sync.WaitGroup
	silent := make([]bool, len(dirs))
	for i, dir := range dirs {
		checks.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			silent[i] = errors.Is(askShim(ctx, dir), context.DeadlineExceeded)
		})
	}
	checks.Wait()
	tasks, err := filepath.Glob(filepath.Join(e.opt.State, taskPlugin, Namespace, "[^.]*"))
	for i, dir := range dirs {
		if !silent[i] {
			continue
		}
		id := filepath.Base(dir)
		e.opt.Log.WarnContext(ctx, "shim does not respond, continuing without it", slog.String("sandbox", id))
		e.aside.loaded[id] = make(chan struct{})
		err = errors.Join(err, e.setAside(id, dir))
		for _, task := range tasks {
			if owner, _ := os.ReadFile(filepath.Join(task, "sandbox")); string(owner) == id { // no file: an incomplete bundle
				err = errors.Join(err, e.setAside(id, task))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("set aside shims that do not respond: %w", err)
	}
	return nil
}

// setAside replaces a bundle with a link to its new place, atomically: the shim may respond at any time.
func (e *Engine) setAside(sandbox, bundle string) error {
	place := filepath.Join(e.asideDir(sandbox), Namespace, filepath.Base(bundle))
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(place, place); err != nil {
		return err
	}
	return exchange(place, bundle)
}

func exchange(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("exchange %s with %s: %w", a, b, err)
	}
	return nil
}

func (e *Engine) asideDir(sandbox string) string {
	return filepath.Join(e.opt.State, asideDir, sandbox)
}

// restoreBundles moves the bundles that an earlier engine has set aside back, and removes the links to those that containerd has
// deleted. It must run before containerd starts.
func restoreBundles(state string) error {
	places, err := filepath.Glob(filepath.Join(state, asideDir, "*", Namespace, "[^.]*"))
	errs := []error{err}
	for _, place := range places {
		errs = append(errs, restoreBundle(state, place))
	}
	if err := errors.Join(append(errs, removeLinks(state))...); err != nil {
		return fmt.Errorf("restore bundles that were set aside: %w", err)
	}
	return nil
}

func restoreBundle(state, place string) error {
	info, err := os.Lstat(place)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return os.Remove(place) // the engine was killed before the exchange, or after that of an earlier restoration
	}
	id, plugin := filepath.Base(place), taskPlugin
	if id == filepath.Base(filepath.Dir(filepath.Dir(place))) {
		plugin = sandboxPlugin
	}
	bundle := filepath.Join(state, plugin, Namespace, id)
	if err := exchange(place, bundle); err != nil {
		return err
	}
	return os.Remove(place)
}

// removeLinks removes links to bundles that were set aside and deleted since, and the directories that were left empty.
func removeLinks(state string) error {
	var errs []error
	for _, plugin := range []string{taskPlugin, sandboxPlugin} {
		entries, err := os.ReadDir(filepath.Join(state, plugin, Namespace))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, entry := range entries {
			link := filepath.Join(state, plugin, Namespace, entry.Name())
			if entry.Type()&fs.ModeSymlink == 0 {
				continue
			}
			if _, err := os.Stat(link); errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, ignoreMissing(os.Remove(link)))
			}
		}
	}
	dirs, _ := filepath.Glob(filepath.Join(state, asideDir, "*")) // the pattern is valid
	for _, dir := range append(dirs, filepath.Join(state, asideDir)) {
		for _, dir := range []string{filepath.Join(dir, Namespace), dir} {
			if err := os.Remove(dir); !errors.Is(err, unix.ENOTEMPTY) {
				errs = append(errs, ignoreMissing(err))
			}
		}
	}
	return errors.Join(errs...)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// loadAside starts to wait for the shims that are set aside, and loads each of them when it responds or exits.
func (e *Engine) loadAside(ctx context.Context) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	e.aside.mu.Lock()
	defer e.aside.mu.Unlock()
	for id := range e.aside.loaded {
		e.aside.loaders.Go(func() {
			dir := e.asideDir(id)
			_ = askShim(ctx, filepath.Join(dir, Namespace, id)) // without a shim, containerd cleans up
			if ctx.Err() != nil {
				return
			}
			// A load that is cancelled fails, and containerd kills the containers. The directory for work directories does not exist:
			// containerd would remove those of other sandboxes.
			if err := e.shims.LoadExistingShims(context.WithoutCancel(ctx), dir, filepath.Join(dir, "work")); err != nil {
				e.opt.Log.WarnContext(ctx, "cannot load shim", slog.String("sandbox", id), slog.Any("error", err))
			}
			e.aside.remove(id)
		})
	}
}

// askShim sends a request to the shim of a bundle and waits for the response, which may be an error of the shim. The error is
// [context.DeadlineExceeded] if there is none in time.
func askShim(ctx context.Context, bundle string) error {
	text, err := os.ReadFile(filepath.Join(bundle, "bootstrap.json"))
	if err != nil {
		return err
	}
	var shim struct{ Address string } // with its scheme: containerd takes other addresses for abstract sockets
	if err := json.Unmarshal(text, &shim); err != nil {
		return err
	}
	conn, err := containerdshim.AnonReconnectDialer(shim.Address, checkTimeout)
	if err != nil {
		return err
	}
	client := ttrpc.NewClient(conn)
	defer client.Close()
	_, err = api.NewTTRPCTaskClient(client).Connect(ctx, &api.ConnectRequest{ID: filepath.Base(bundle)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
