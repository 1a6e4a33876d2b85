package volume

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// EnsureUnbindable makes a directory an unbindable mount, see mount_namespaces(7), and creates it if necessary: a recursive bind mount of a
// directory above it in this mount namespace does not contain the mounts in it. Mounts that are already in the directory stay there. It
// returns the path without symbolic links.
func EnsureUnbindable(dir string) (real string, err error) {
	if real, err = makeDir(dir); err == nil {
		err = ensureUnbindable(real)
	}
	return real, err
}

func ensureUnbindable(dir string) error {
	inside, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	if slices.ContainsFunc(inside,
		func(m *mountinfo.Info) bool { return m.Mountpoint == dir && strings.Contains(m.Optional, "unbindable") }) {
		return nil
	}
	covered, err := openAll(inside)
	defer closeAll(covered)
	if err != nil {
		return err
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind mount %s: %w", dir, err)
	}
	if err := unix.Mount("", dir, "", unix.MS_UNBINDABLE, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s unbindable: %w", dir, err), unix.Unmount(dir, unix.MNT_DETACH))
	}
	var errs []error
	for _, fd := range covered { // they have been copied, and a directory with a mount on it cannot be removed
		path := fdPath(fd)
		errs = append(errs, makePrivate(path), unix.Unmount(path, unix.MNT_DETACH))
	}
	return errors.Join(errs...)
}

// openAll opens the roots of mounts, the innermost first. The caller closes them, also after an error.
func openAll(list []*mountinfo.Info) (fds []int, err error) {
	for _, m := range slices.Backward(list) {
		fd, err := unix.Open(m.Mountpoint, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return fds, fmt.Errorf("open mount %s: %w", m.Mountpoint, err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// ReleaseUnbindable undoes [EnsureUnbindable], unless something is mounted in the directory.
func ReleaseUnbindable(dir string) error {
	list, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	if len(list) != 1 || list[0].Mountpoint != dir {
		return nil
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
