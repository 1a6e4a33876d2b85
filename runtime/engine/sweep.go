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

// sweep takes away what containerd leaves when it is killed, and does not look for afterwards: folders of temporary mounts,
// bundles that it has renamed to delete them, and, after a boot, the working folders of bundles that are gone. Nothing is
// mounted there any more, and no engine runs.
func sweep(root, state string) error {
	var errs []error
	mounts, err := filepath.Glob(filepath.Join(root, "tmpmounts", "containerd-mount*"))
	errs = append(errs, err)
	for _, dir := range mounts {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	bundles, err := filepath.Glob(filepath.Join(state, "io.containerd.runtime.v2.task", "*", ".*"))
	errs = append(errs, err)
	for _, dir := range bundles {
		// One whose rootfs is not an empty folder may still be mounted: containerd unmounts it before the renaming.
		if err := os.Remove(filepath.Join(dir, "rootfs")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	errs = append(errs, sweepWork(root, state))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// sweepSnapshots takes away the folders of snapshots that have no record. After a loss of power that may be a folder with the number
// that the next record gets, which would then not be made. Nothing makes snapshots yet.
func sweepSnapshots(ctx context.Context, cleaners []snapshots.Cleaner) error {
	var errs []error
	for _, c := range cleaners {
		if err := c.Cleanup(ctx); !errdefs.IsNotFound(err) { // so it is where there never was a snapshot
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep snapshots: %w", err)
	}
	return nil
}

// sweepWork takes away the working folders that no bundle has. containerd looks for those only where a bundle is left.
func sweepWork(root, state string) error {
	var errs []error
	for _, plugin := range []string{taskPlugin, sandboxPlugin} {
		folders, err := filepath.Glob(filepath.Join(root, plugin, Namespace, "*"))
		errs = append(errs, err)
		for _, dir := range folders {
			_, err := os.Lstat(filepath.Join(state, plugin, Namespace, filepath.Base(dir)))
			if errors.Is(err, fs.ErrNotExist) {
				err = os.RemoveAll(dir)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
