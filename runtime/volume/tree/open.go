package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// resolveBelow is how a path below a volume is resolved: links count, those that lead out are an error (EXDEV), and so is
// every other way out, also for a container that changes the tree at the same time.
const resolveBelow = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// resolveTries is how often a path is resolved again after the kernel saw a change that may have led out (EAGAIN).
const resolveTries = 32

// OpenBelow opens what a relative path names below a folder, for mounting it (O_PATH).
func OpenBelow(root int, sub string) (int, error) {
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

// OpenOrCreate opens what a relative path names below a folder. Where there is nothing it makes folders with the mode of the
// volume's own.
func OpenOrCreate(root int, sub string) (int, error) {
	fd, err := OpenBelow(root, sub)
	if !errors.Is(err, fs.ErrNotExist) {
		return fd, err
	}
	var volume unix.Stat_t
	if err := unix.Fstat(root, &volume); err != nil {
		return -1, err
	}
	parts := strings.Split(sub, "/")
	for n := range slices.Backward(parts) {
		fd, err = OpenBelow(root, path.Join(".", path.Join(parts[:n]...)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return -1, err
		}
		return CreateBelow(fd, parts[n:], volume.Mode&^unix.S_IFMT)
	}
	return -1, err
}

// CreateBelow makes folders in each other, opens the innermost, and closes the one that it begins with. What another has put
// in the way meanwhile is an error, unless it is a folder.
func CreateBelow(fd int, names []string, mode uint32) (int, error) {
	for _, name := range names {
		next, err := makeFolder(fd, name, mode)
		unix.Close(fd)
		if err != nil {
			return -1, fmt.Errorf("make folder %q: %w", name, err)
		}
		fd = next
	}
	return fd, nil
}

func makeFolder(parent int, name string, mode uint32) (int, error) {
	made := unix.Mkdirat(parent, name, mode&0o777)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return -1, made
	}
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{Flags: openEntry | unix.O_DIRECTORY, Resolve: resolveEntry})
	if err != nil || made != nil {
		return fd, err
	}
	if err := unix.Chmod(FdPath(fd), mode); err != nil { // whatever the umask is
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// FdPath leads to what a descriptor of this process stands for, wherever that has been moved to.
func FdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// Ignore is err unless it is one of those.
func Ignore(err error, these ...error) error {
	for _, e := range these {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
