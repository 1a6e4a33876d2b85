package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
