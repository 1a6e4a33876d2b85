package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/ocibundle"
)

// sweepTimeout is the time for the OCI runtime to delete a container that was left.
const sweepTimeout = 10 * time.Second

// deletedBundles returns the bundles of containers and sandboxes that containerd renamed to delete them, and did not delete.
func deletedBundles(state string) ([]string, error) {
	var list []string
	for _, pattern := range []string{
		filepath.Join(taskPlugin, "*", ".*"), filepath.Join(sandboxPlugin, "*", ".*"), filepath.Join(asideDir, "*", Namespace, ".*"),
	} {
		dirs, err := filepath.Glob(filepath.Join(state, pattern))
		if err != nil {
			return nil, err
		}
		list = append(list, dirs...)
	}
	return list, nil
}

// sweepRunc deletes the containers of the OCI runtime that have no bundle: containerd and the shim were killed between two steps of a
// deletion, and no one would delete them. Errors are logged: such a container disturbs no other. It must run before containerd starts.
func sweepRunc(ctx context.Context, o Options) {
	root := filepath.Join(o.State, "runc", Namespace)
	dirs, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.WarnContext(ctx, "cannot list containers of the OCI runtime", slog.Any("error", err))
	}
	for _, dir := range dirs {
		// crun has a directory .cache, and runsc has its state in files.
		if !dir.IsDir() || strings.HasPrefix(dir.Name(), ".") || hasBundle(o.State, dir.Name()) {
			continue
		}
		if err := deleteRuncContainer(ctx, o, root, dir.Name()); err != nil {
			o.Log.WarnContext(ctx, "cannot delete a container of the OCI runtime that has no bundle",
				slog.String("container", dir.Name()), slog.Any("error", err))
		}
	}
}

// sweepRoots removes the root file systems outside of bundles that have no bundle.
func sweepRoots(roots, state string) error {
	if roots == "" {
		return nil
	}
	return ocibundle.SweepRoots(roots, func(id string) bool { return hasBundle(state, id) })
}

// hasBundle reports whether a container or sandbox has a bundle, or is one of the monitor, whose bundle may have been lost.
func hasBundle(state, id string) bool {
	for _, dir := range append(bundleDirs(state), monitor.ContainersDir(MonitorDir(state))) {
		if _, err := os.Lstat(filepath.Join(dir, id)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// deleteRuncContainer kills and deletes a container. A state directory without a state file is of one that was never created.
func deleteRuncContainer(ctx context.Context, o Options, root, id string) error {
	dir := filepath.Join(root, id)
	if !exists(filepath.Join(dir, "state.json")) && !exists(filepath.Join(dir, "status")) { // of runc, and of crun
		return os.RemoveAll(dir)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	args := []string{"--root", root}
	if o.SystemdCgroup {
		args = append(args, "--systemd-cgroup")
	}
	creator := "runc"
	if exists(filepath.Join(dir, "status")) {
		creator = "crun"
	}
	out, err := exec.CommandContext(ctx, o.runtimeOf(creator), append(args, "delete", "--force", id)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// runtimeOf returns the program of an OCI runtime whose files were found. It is the first configured one that can be the same.
func (o *Options) runtimeOf(creator string) string {
	for _, program := range append([]string{o.Runtime}, o.Classes...) {
		name := filepath.Base(program)
		if filepath.IsAbs(program) &&
			(strings.Contains(name, creator) || !strings.Contains(name, "runc") && !strings.Contains(name, "crun")) {
			return program
		}
	}
	return creator
}
