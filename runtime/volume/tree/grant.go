package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// The permissions that a volume's fsGroup gets, added to what is there: in a volume that can be written, in one that
// cannot, and to folders of both.
const (
	groupFile     = 0o660
	groupReadFile = 0o440
	groupEnter    = 0o110
)

// granted is the mode of an entry once a group has been let in, as the kubelet has it (volume_linux.go): the owner and the
// group may read and write; folders can be entered, and hand their group on.
func granted(mode uint32) uint32 {
	mask := uint32(groupFile)
	if mode&unix.S_IFMT == unix.S_IFDIR {
		mask |= groupEnter | unix.S_ISGID
	}
	return mode | mask
}

// Grant gives everything in a folder to a group. The folder itself comes last, so that it tells whether all was done:
// with onRootMismatch nothing is looked at in a folder that is right itself.
func Grant(ctx context.Context, dir string, gid uint32, onRootMismatch bool) error {
	if onRootMismatch {
		var root unix.Stat_t
		if err := unix.Stat(dir, &root); err != nil {
			return fmt.Errorf("look at %s: %w", dir, err)
		}
		if root.Gid == gid && granted(root.Mode) == root.Mode {
			return nil
		}
	}
	return walk(ctx, dir, func(fd int, stat *unix.Stat_t) error { return grant(fd, stat, gid) })
}

// grant gives one entry to a group. Of a link only the link itself is changed, and it has no mode. A new group first: it
// takes setuid and setgid away from programs, and the mode puts back what was there, as the kubelet does.
func grant(fd int, stat *unix.Stat_t, gid uint32) error {
	mode := granted(stat.Mode)
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
	if err := unix.Chmod(FdPath(fd), mode&^unix.S_IFMT); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("change mode: %w", err)
	}
	return nil
}
