package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// sweep removes what an engine leaves behind when it is killed and never removes later: directories of temporary mounts, bundles
// that containerd renamed to delete them, sockets of terminals and, after a boot, work directories of bundles that no longer exist. No
// engine may be running and no file system may be mounted there.
func sweep(root, state string) error {
	var errs []error
	mounts, err := filepath.Glob(filepath.Join(root, "tmpmounts", "containerd-mount*"))
	errs = append(errs, err)
	for _, dir := range mounts {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	bundles, err := deletedBundles(state)
	errs = append(errs, err)
	for _, dir := range bundles {
		// A rootfs that is not empty may still be mounted. containerd unmounts it before it renames the bundle.
		if err := os.Remove(filepath.Join(dir, "rootfs")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	terminals, err := filepath.Glob(filepath.Join(MonitorDir(state), terminalPrefix+"*"))
	errs = append(errs, err)
	for _, dir := range terminals {
		errs = append(errs, os.RemoveAll(dir))
	}
	errs = append(errs, sweepWork(root, state))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// sweepSnapshots removes the directories of snapshots without a record. Power loss can leave one with the number that the next
// snapshot gets, whose creation would then fail. It must run before the first snapshot is created.
func sweepSnapshots(ctx context.Context, cleaners []snapshots.Cleaner) error {
	var errs []error
	for _, c := range cleaners {
		if err := c.Cleanup(ctx); !errdefs.IsNotFound(err) { // NotFound: there never was a snapshot
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep snapshots: %w", err)
	}
	return nil
}

// sweepWork removes the work directories that have no bundle. containerd removes them only together with a bundle.
func sweepWork(root, state string) error {
	var errs []error
	for _, plugin := range []string{taskPlugin, sandboxPlugin} {
		dirs, err := filepath.Glob(filepath.Join(root, plugin, Namespace, "*"))
		errs = append(errs, err)
		for _, dir := range dirs {
			_, err := os.Lstat(filepath.Join(state, plugin, Namespace, filepath.Base(dir)))
			if errors.Is(err, fs.ErrNotExist) {
				err = os.RemoveAll(dir)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
