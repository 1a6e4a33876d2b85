package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// ensureBelow creates a relative path below a directory unless it exists: a directory, or an empty file, and missing directories above it.
// The modes are those of mount points that runc creates.
func ensureBelow(root int, sub string, isDir bool) error {
	fd, err := openBelow(root, sub)
	if err == nil {
		return unix.Close(fd)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parts := strings.Split(sub, "/")
	name := parts[len(parts)-1]
	dir, err := openDirs(root, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	if isDir {
		dir, err = createBelow(dir, []string{name}, 0o755)
		unix.Close(dir)
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

// openDirs opens nested directories and creates the missing ones. It returns a descriptor of the innermost.
func openDirs(root int, names []string) (int, error) {
	fd, err := openBelow(root, ".")
	for n := range names {
		if err != nil {
			return -1, err
		}
		next, missing := openBelow(root, path.Join(names[:n+1]...))
		if errors.Is(missing, fs.ErrNotExist) {
			return createBelow(fd, names[n:], 0o755)
		}
		unix.Close(fd)
		fd, err = next, missing
	}
	return fd, err
}
