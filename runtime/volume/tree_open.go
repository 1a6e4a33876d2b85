package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// resolveBelow resolves a path below a directory. Links out of it are an error (EXDEV), even if a container changes the
// tree concurrently.
const resolveBelow = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// resolveTries bounds the retries after EAGAIN, which the kernel returns for a concurrent change that might lead out.
const resolveTries = 32

// openBelow opens a relative path below a directory with O_PATH.
func openBelow(root int, sub string) (int, error) {
	var fd int
	err := error(unix.EAGAIN)
	for range resolveTries {
		fd, err = unix.Openat2(root, sub, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolveBelow})
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EXDEV) {
		return -1, fmt.Errorf("subpath %q not within volume path", sub)
	}
	if err != nil {
		return -1, fmt.Errorf("open subpath %q: %w", sub, err)
	}
	return fd, nil
}

// openLink opens a relative path below a directory with O_PATH, without following links. It can be a link itself. The path of the directory
// is "".
func openLink(root int, sub string) (int, error) {
	fd, err := unix.Openat2(root, path.Join(".", sub), &unix.OpenHow{
		Flags: openEntry, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return -1, fmt.Errorf("open %q: %w", sub, err)
	}
	return fd, nil
}

// openOrCreate is openBelow, and creates missing directories with the mode of root.
func openOrCreate(root int, sub string) (int, error) {
	var volume unix.Stat_t
	if err := unix.Fstat(root, &volume); err != nil {
		return -1, err
	}
	return openDirs(root, sub, volume.Mode&^unix.S_IFMT)
}

// openDirs is openBelow, and creates missing directories with a mode.
func openDirs(root int, sub string, mode uint32) (int, error) {
	fd, err := openBelow(root, sub)
	if !errors.Is(err, fs.ErrNotExist) {
		return fd, err
	}
	parts := strings.Split(sub, "/")
	for n := range slices.Backward(parts) {
		fd, err = openBelow(root, path.Join(".", path.Join(parts[:n]...)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return -1, err
		}
		return createBelow(fd, parts[n:], mode)
	}
	return -1, err
}

// createBelow creates nested directories and returns a descriptor of the innermost. It closes fd. An entry that another
// process creates concurrently is an error unless it is a directory.
func createBelow(fd int, names []string, mode uint32) (int, error) {
	for _, name := range names {
		next, err := createDirBelow(fd, name, mode)
		unix.Close(fd)
		if err != nil {
			return -1, fmt.Errorf("create directory %q: %w", name, err)
		}
		fd = next
	}
	return fd, nil
}

func createDirBelow(parent int, name string, mode uint32) (int, error) {
	created := unix.Mkdirat(parent, name, mode&0o777)
	if created != nil && !errors.Is(created, fs.ErrExist) {
		return -1, created
	}
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{Flags: openEntry | unix.O_DIRECTORY, Resolve: resolveEntry})
	if err != nil || created != nil {
		return fd, err
	}
	if err := unix.Chmod(fdPath(fd), mode); err != nil { // independent of the umask
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// isBelow reports whether a path is a directory or below it. Both are clean and absolute.
func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// fdPath returns a path to an open file, independent of renames.
func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// ignore returns err unless it is one of the others.
func ignore(err error, these ...error) error {
	if isAny(err, these...) {
		return nil
	}
	return err
}

// isAny reports whether err is one of the others.
func isAny(err error, these ...error) bool {
	return slices.ContainsFunc(these, func(e error) bool { return errors.Is(err, e) })
}
