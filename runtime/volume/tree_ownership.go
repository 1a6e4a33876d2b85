package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Permissions added for the fsGroup to files and to directories.
const (
	groupFile  = 0o660
	groupEnter = 0o110
)

// ownedMode returns the mode of an entry owned by an fsGroup, as in volume_linux.go of the kubelet: owner and group can
// read and write, and directories pass on their group.
func ownedMode(mode uint32) uint32 {
	mask := uint32(groupFile)
	if mode&unix.S_IFMT == unix.S_IFDIR {
		mask |= groupEnter | unix.S_ISGID
	}
	return mode | mask
}

// setOwnership changes the group of a directory tree. The directory itself is changed last, so its state tells whether
// the tree was completed. With onRootMismatch, the tree is skipped if the directory is already right.
func setOwnership(ctx context.Context, dir string, gid uint32, onRootMismatch bool) error {
	if onRootMismatch {
		var root unix.Stat_t
		if err := unix.Stat(dir, &root); err != nil {
			return fmt.Errorf("stat %s: %w", dir, err)
		}
		if root.Gid == gid && ownedMode(root.Mode) == root.Mode {
			return nil
		}
	}
	return walk(ctx, dir, func(fd int, stat *unix.Stat_t) error { return setEntryOwnership(fd, stat, gid) })
}

// setEntryOwnership changes the group and mode of one entry. Of a symbolic link, only the group is changed. The group is
// set first: this clears setuid and setgid, which the mode then restores, as in the kubelet.
func setEntryOwnership(fd int, stat *unix.Stat_t, gid uint32) error {
	mode := ownedMode(stat.Mode)
	if stat.Gid == gid && (mode == stat.Mode || stat.Mode&unix.S_IFMT == unix.S_IFLNK) {
		return nil
	}
	if stat.Gid != gid {
		err := unix.Fchownat(fd, "", -1, int(gid), unix.AT_EMPTY_PATH)
		if err != nil {
			return fmt.Errorf("change group: %w", err)
		}
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil
	}
	if err := unix.Chmod(fdPath(fd), mode&^unix.S_IFMT); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("change mode: %w", err)
	}
	return nil
}
