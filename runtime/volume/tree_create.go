package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"
)

// ensureBelow creates a relative path below a directory unless it exists: a directory, or an empty file, and missing directories above it.
// The modes are those of mount points that runc creates.
func ensureBelow(root int, sub string, isDir bool) error {
	if isDir {
		fd, err := openDirs(root, sub, 0o755)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	fd, err := openBelow(root, sub)
	if err == nil {
		return unix.Close(fd)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := path.Base(sub)
	dir, err := openDirs(root, path.Dir(sub), 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	file, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags: unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC, Mode: 0o755, Resolve: resolveEntry,
	})
	if errors.Is(err, fs.ErrExist) { // by another process
		return nil
	}
	if err != nil {
		return fmt.Errorf("create file %q: %w", name, err)
	}
	return unix.Close(file)
}
