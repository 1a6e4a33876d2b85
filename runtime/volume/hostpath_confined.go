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

	"github.com/podstead/podstead/runtime/volume/tree"
	"github.com/podstead/podstead/spec"
)

// confined reports whether host paths may lie in some folders only. Then they are opened once, looked at, and mounted by that
// descriptor: whoever can write to an allowed folder, as a container with such a volume can, may put a link in the way at any
// moment.
func (s *Set) confined() bool {
	return s.opts.HostPaths != nil && !slices.ContainsFunc(s.opts.HostPaths, func(dir string) bool { return filepath.Clean(dir) == "/" })
}

// prepareHostPath makes a path of the machine, or checks what is there, as its type says.
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

// openAllowed is prepareHostPath where host paths are confined. It returns what is there, for mounting (O_PATH).
func (s *Set) openAllowed(v *spec.HostPathVolume) (fd int, err error) {
	path := filepath.Clean(v.Path)
	fd, err = s.openBelowAllowed(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		fd, err = s.makeAllowed(v, path)
		if errors.Is(err, errNotMade) {
			return -1, checkType(v, fs.ModeIrregular, true)
		}
	}
	if err != nil {
		return -1, err
	}
	info, err := os.Stat(tree.FdPath(fd))
	if err == nil {
		err = checkType(v, info.Mode(), false)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openBelowAllowed opens a path, which must lead to somewhere below an allowed folder. Links of /proc, which lead into other mount
// namespaces, are not followed.
func (s *Set) openBelowAllowed(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("open hostPath %q: %w", path, err)
	}
	real, err := os.Readlink(tree.FdPath(fd))
	if err == nil && !s.allowed(real) {
		err = fmt.Errorf("hostPath %q leads to %q: the policy of this machine allows hostPaths below %s", path, real, strings.Join(s.opts.HostPaths, ", "))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// allowed reports whether a path without links is below an allowed folder. The folders themselves may be reached by links: they
// are the administrator's.
func (s *Set) allowed(real string) bool {
	return slices.ContainsFunc(s.opts.HostPaths, func(dir string) bool {
		root, err := filepath.EvalSymlinks(dir)
		return err == nil && (real == root || strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/"))
	})
}

// errNotMade says that a host path of this type is not made.
var errNotMade = errors.New("not made")

// makeAllowed makes what the type of a host path says, which is not there yet, without following any link below the first
// folder that is there.
func (s *Set) makeAllowed(v *spec.HostPathVolume, path string) (int, error) {
	folder := v.Type == spec.HostPathUnset || v.Type == spec.HostPathDirectoryOrCreate
	if !folder && v.Type != spec.HostPathFileOrCreate {
		return -1, errNotMade
	}
	parent, names := filepath.Dir(path), []string{filepath.Base(path)}
	fd, err := s.openBelowAllowed(parent)
	for errors.Is(err, fs.ErrNotExist) && folder {
		parent, names = filepath.Dir(parent), slices.Insert(names, 0, filepath.Base(parent))
		fd, err = s.openBelowAllowed(parent)
	}
	if err != nil {
		return -1, fmt.Errorf("make hostPath: %w", err)
	}
	if folder {
		if fd, err = tree.CreateBelow(fd, names, 0o755); err != nil {
			return -1, fmt.Errorf("make hostPath: %w", err)
		}
		return fd, nil
	}
	defer unix.Close(fd)
	made, err := unix.Openat(fd, names[0], unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_RDONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return -1, fmt.Errorf("make hostPath %q: %w", path, err)
	}
	return made, nil
}
