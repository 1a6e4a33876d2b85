package volume

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// bindMountMapped is bindMount with an id-mapped mount: files of root belong to root of the user namespace. OCI runtimes support
// this too, but not in the versions of older distributions. Mounts below are not mapped.
func bindMountMapped(fd int, target string, recursive uintptr, users string) error {
	namespace, err := unix.Open(users, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open user namespace %s: %w", users, err)
	}
	defer unix.Close(namespace)
	if err := makeTarget(fd, target); err != nil {
		return err
	}
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)
	if recursive != 0 {
		flags |= unix.AT_RECURSIVE
	}
	tree, err := unix.OpenTree(fd, "", flags)
	if err != nil {
		return fmt.Errorf("bind mount: %w", err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("id-map mount, required for hostUsers = false: %w", idmapError(fd, err))
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("bind mount: %w", err)
	}
	return nil
}

// idmapError adds the likely cause to an error of mount_setattr.
func idmapError(fd int, err error) error {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("requires Linux 5.12: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("mount is already id-mapped: %w", err)
	}
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) == nil {
		return fmt.Errorf("not supported by the file system (type %#x): %w", uint32(fs.Type), err) // 32 bits, by statfs(2)
	}
	return err
}

// lockedFlags are the mount flags that cannot be cleared in a user namespace. A remount must repeat them.
var lockedFlags = []struct {
	flag   int64
	option string
}{{unix.ST_NOSUID, "nosuid"}, {unix.ST_NODEV, "nodev"}, {unix.ST_NOEXEC, "noexec"}}

// keepFlags adds the locked flags of the mount at source to the options of a mount.
func keepFlags(source string, options []string) ([]string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(source, &fs); err != nil {
		return nil, fmt.Errorf("stat %s: %w", source, err)
	}
	for _, l := range lockedFlags {
		if int64(fs.Flags)&l.flag != 0 { //nolint:unconvert // 32 bits wide elsewhere
			options = append(options, l.option)
		}
	}
	return options, nil
}
