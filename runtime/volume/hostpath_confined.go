package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// confined reports whether host paths are restricted to some directories. They are then opened once, checked, and mounted
// by file descriptor, because a container that can write to an allowed directory may replace a component by a link at any
// moment.
func (s *Set) confined() bool {
	return s.opts.HostPaths != nil && !slices.ContainsFunc(s.opts.HostPaths, func(dir string) bool { return filepath.Clean(dir) == "/" })
}

// prepareHostPath creates a host path or checks its type.
func (s *Set) prepareHostPath(v *spec.HostPathVolume) error {
	if !s.confined() {
		return checkHostPath(v)
	}
	fd, err := s.openAllowed(v)
	if err != nil {
		return err
	}
	return os.NewSyscallError("close", unix.Close(fd))
}

// openAllowed is prepareHostPath for confined host paths. It returns an O_PATH descriptor for mounting.
func (s *Set) openAllowed(v *spec.HostPathVolume) (fd int, err error) {
	path := filepath.Clean(v.Path)
	fd, err = s.openBelowAllowed(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		fd, err = s.createAllowed(v, path)
		if errors.Is(err, errNotCreated) {
			return -1, checkType(v, fs.ModeIrregular, true)
		}
	}
	if err != nil {
		return -1, err
	}
	info, err := os.Stat(fdPath(fd))
	if err == nil {
		err = checkType(v, info.Mode(), false)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openBelowAllowed opens a path, which must be below an allowed directory after links are resolved. Magic links in /proc,
// which lead into other mount namespaces, are not followed.
func (s *Set) openBelowAllowed(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("open hostPath %q: %w", path, err)
	}
	real, err := os.Readlink(fdPath(fd))
	if err == nil && !s.allowed(real) {
		err = fmt.Errorf("hostPath %q leads to %q: must be below %s", path, real, strings.Join(s.opts.HostPaths, ", "))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// allowed reports whether a resolved path is below an allowed directory. The allowed directories themselves may be given
// by links, since they are set by the administrator.
func (s *Set) allowed(real string) bool {
	return slices.ContainsFunc(s.opts.HostPaths, func(dir string) bool {
		root, err := filepath.EvalSymlinks(dir)
		return err == nil && isBelow(real, root)
	})
}

// errNotCreated means that a host path of this type is not created.
var errNotCreated = errors.New("not created")

// createAllowed creates a missing host path by its type, without following links below the first existing directory.
func (s *Set) createAllowed(v *spec.HostPathVolume, path string) (int, error) {
	createDirectory := v.Type == spec.HostPathUnset || v.Type == spec.HostPathDirectoryOrCreate
	if !createDirectory && v.Type != spec.HostPathFileOrCreate {
		return -1, errNotCreated
	}
	parent, names := filepath.Dir(path), []string{filepath.Base(path)}
	fd, err := s.openBelowAllowed(parent)
	for errors.Is(err, fs.ErrNotExist) && createDirectory {
		parent, names = filepath.Dir(parent), slices.Insert(names, 0, filepath.Base(parent))
		fd, err = s.openBelowAllowed(parent)
	}
	if err != nil {
		return -1, fmt.Errorf("create hostPath: %w", err)
	}
	if createDirectory {
		if fd, err = createBelow(fd, names, 0o755); err != nil {
			return -1, fmt.Errorf("create hostPath: %w", err)
		}
		return fd, nil
	}
	defer unix.Close(fd)
	created, err := unix.Openat(fd, names[0], unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_RDONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return -1, fmt.Errorf("create hostPath %q: %w", path, err)
	}
	return created, nil
}
