package volume

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/order"
)

// ensureTmpfs mounts a tmpfs at dir unless it is mounted. It is not swapped out if the kernel supports that (6.4).
func ensureTmpfs(dir string, flags uintptr, data string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mounted, err := mountinfo.Mounted(dir)
	if mounted || err != nil {
		return err
	}
	if err := mountTmpfs(dir, flags, data, "noswap"); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", dir, err)
	}
	return nil
}

// mountTmpfs mounts or remounts a tmpfs. The optional mount option is left out if the kernel does not support it.
func mountTmpfs(dir string, flags uintptr, data, optional string) error {
	err := unix.Mount("tmpfs", dir, "tmpfs", flags, data+","+optional)
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", dir, "tmpfs", flags, data)
	}
	return err
}

// resizeTmpfs changes the size of a mounted tmpfs, in bytes, and how many files it can have, which is not less than it has. The error is
// that the content of its files does not fit, or that of the kernel.
func resizeTmpfs(dir string, size, files int64) error {
	var now unix.Statfs_t
	if err := unix.Statfs(dir, &now); err != nil {
		return fmt.Errorf("size of %s: %w", dir, err)
	}
	files = max(files, int64(now.Files-now.Ffree))
	if int64(now.Blocks) == pagesOf(&now, size) && int64(now.Files) == files {
		return nil
	}
	if err := fits(&now, size); err != nil {
		return err
	}
	data := fmt.Sprintf("size=%d,nr_inodes=%d", size, files)
	if err := mountTmpfs(dir, unix.MS_REMOUNT, data, "noswap"); err != nil { // as it was mounted
		return fmt.Errorf("resize tmpfs on %s: %w", dir, err)
	}
	return nil
}

// pagesOf returns how many pages a tmpfs of this size in bytes has.
func pagesOf(now *unix.Statfs_t, size int64) int64 {
	page := int64(now.Bsize) //nolint:unconvert // 32 bits wide elsewhere
	return (size + page - 1) / page
}

// fits returns an error if the content of the files in a tmpfs does not fit into this size in bytes.
func fits(now *unix.Statfs_t, size int64) error {
	if used := int64(now.Blocks - now.Bfree); used > pagesOf(now, size) {
		return fmt.Errorf("its files have %d bytes, and its new size is %d bytes", used*int64(now.Bsize), size) //nolint:unconvert // as above
	}
	return nil
}

// unmountRounds bounds how often the mounts are listed, since new mounts may appear while others are unmounted.
const unmountRounds = 5

// unmountTree unmounts everything at and below dir. It is no error if nothing is mounted.
func unmountTree(dir string) error {
	var errs error
	for range unmountRounds {
		list, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
		if err != nil {
			return fmt.Errorf("list mounts: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		errs = unmountAll(list)
	}
	return errors.Join(fmt.Errorf("unmount %s: mounts are left", dir), errs)
}

// unmountAll unmounts the deepest mounts first. All are made private before: a container may have mounted a directory of
// the host, and unmounting a part of it would propagate to the host.
func unmountAll(list []*mountinfo.Info) error {
	var errs []error
	for _, m := range list {
		errs = append(errs, withMount(m.Mountpoint, makePrivate))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	order.Sort(list, func(a, b *mountinfo.Info) int {
		return cmp.Compare(strings.Count(b.Mountpoint, "/"), strings.Count(a.Mountpoint, "/"))
	})
	for _, m := range list {
		errs = append(errs, withMount(m.Mountpoint, func(path string) error {
			// A mount below another one at the same path could not be made private before.
			return errors.Join(ignore(makePrivate(path), unix.EINVAL), unix.Unmount(path, unix.MNT_DETACH))
		}))
	}
	return errors.Join(errs...)
}

func makePrivate(path string) error { return unix.Mount("", path, "", unix.MS_PRIVATE, "") }

// withMount calls f with a path to the root of the top mount at a mount point, without following links. It is no error if
// there is none. A container can move a directory of its volume with a mount on it: that is unmounted with the volume.
func withMount(place string, f func(path string) error) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, place, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err == nil {
		defer unix.Close(fd)
		err = ignore(f(fdPath(fd)), unix.EINVAL) // not a mount point
	}
	if err = ignore(err, fs.ErrNotExist, unix.ELOOP, unix.ENOTDIR); err != nil {
		return fmt.Errorf("unmount %s: %w", place, err)
	}
	return nil
}

// mountOf returns the mount of an open file or directory.
func mountOf(fd int) (*mountinfo.Info, error) {
	list, err := listMounts()
	if err != nil {
		return nil, err
	}
	return list.Of(fd)
}
