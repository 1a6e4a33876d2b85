package mountpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/tree"
)

// ensureTmpfs mounts a tmpfs of its own at dir, or finds it. Where the kernel can (6.4), it is never swapped out.
func EnsureTmpfs(dir string, flags uintptr, data string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mounted, err := mountinfo.Mounted(dir)
	if mounted || err != nil {
		return err
	}
	return MountTmpfs(dir, flags, data, "noswap")
}

// mountTmpfs mounts a tmpfs, with an option that the kernel need not know.
func MountTmpfs(dir string, flags uintptr, data, wish string) error {
	err := unix.Mount("tmpfs", dir, "tmpfs", flags, data+","+wish)
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", dir, "tmpfs", flags, data)
	}
	if err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", dir, err)
	}
	return nil
}

// unmountRounds is how often the list of mounts is read until nothing is left. More than one round is needed where mounts
// come while others go.
const unmountRounds = 5

// Unmount unmounts dir and everything below it.
func Unmount(dir string) error {
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
	return errors.Join(fmt.Errorf("%s: mounts are left", dir), errs)
}

// unmountAll unmounts the deepest first. Before that all leave their peers: a container may have mounted the machine's own
// tree there, and unmounting a part of that would unmount it in the machine too.
func unmountAll(list []*mountinfo.Info) error {
	var errs []error
	for _, m := range list {
		errs = append(errs, onMount(m.Mountpoint, leavePeers))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b *mountinfo.Info) int {
		return cmp.Compare(strings.Count(b.Mountpoint, "/"), strings.Count(a.Mountpoint, "/"))
	})
	for _, m := range list {
		errs = append(errs, onMount(m.Mountpoint, func(path string) error {
			// One that lay below another at the same place could not be reached before.
			return errors.Join(tree.Ignore(leavePeers(path), unix.EINVAL), unix.Unmount(path, unix.MNT_DETACH))
		}))
	}
	return errors.Join(errs...)
}

func leavePeers(path string) error { return unix.Mount("", path, "", unix.MS_PRIVATE, "") }

// onMount calls f with a path that is the root of the uppermost mount at a place, which no link leads to. It is no error
// if there is none any more.
func onMount(place string, f func(path string) error) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, place, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err == nil {
		defer unix.Close(fd)
		err = tree.Ignore(f(tree.FdPath(fd)), unix.EINVAL) // it is no mount
	}
	if err = tree.Ignore(err, fs.ErrNotExist); err != nil {
		return fmt.Errorf("unmount %s: %w", place, err)
	}
	return nil
}

// Of is the mount that an open file or folder is seen through.
func Of(fd int) (*mountinfo.Info, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return nil, err
	}
	id := -1
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			if id, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, fmt.Errorf("look for a mount: %w", err)
			}
		}
	}
	list, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.ID != id, m.ID == id })
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("mount %d is not in the list of mounts", id)
	}
	return list[0], nil
}
