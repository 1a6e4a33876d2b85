package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// This file finds out where the OCI runtime mounts what a container has.

// mountPlace is where the OCI runtime mounts something.
type mountPlace struct {
	Path   string // in the container, without links
	Parent int    // the index of the mount that contains it; -1: none
}

// placesOf returns where the OCI runtime mounts each of these in a root file system, one after the other. Links of the image and of volumes
// are followed as in runc. A container can change those of volumes at any time: the result is a path, not a promise.
func placesOf(root string, mounts []specs.Mount) ([]mountPlace, error) {
	v := view{root: root, mounts: mounts}
	for _, m := range mounts {
		name, err := securejoin.SecureJoinVFS(root, m.Destination, &v)
		if err != nil {
			return nil, fmt.Errorf("resolve mount point %q: %w", m.Destination, err)
		}
		p := path.Join("/", strings.TrimPrefix(name, root))
		if inKernelFileSystem(p) && !inKernelFileSystem(m.Destination) {
			return nil, fmt.Errorf("mount point %q leads to %s through a symbolic link", m.Destination, p)
		}
		v.places = append(v.places, mountPlace{p, v.containing(p)})
	}
	return v.places, nil
}

// inKernelFileSystem reports whether a path is at or below a file system that the OCI runtime sets up.
func inKernelFileSystem(p string) bool {
	return isBelow(p, "/dev") || isBelow(p, "/proc") || isBelow(p, "/sys")
}

// view is a root file system with the first mounts in it, for package securejoin.
type view struct {
	root   string
	mounts []specs.Mount
	places []mountPlace
}

// containing returns the index of the mount that shows a path, the last one of those above it; -1: none.
func (v *view) containing(p string) int {
	for i, above := range slices.Backward(v.places) {
		if isBelow(p, above.Path) {
			return i
		}
	}
	return -1
}

// Lstat returns the status of a file or link. File systems that the OCI runtime creates are empty.
func (v *view) Lstat(name string) (info os.FileInfo, err error) {
	err = v.open(name, func(f *os.File) error {
		info, err = f.Stat()
		return err
	})
	return info, err
}

// Readlink returns the target of a link.
func (v *view) Readlink(name string) (target string, err error) {
	err = v.open(name, func(f *os.File) error {
		buffer := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(f.Fd()), "", buffer)
		target = string(buffer[:max(n, 0)])
		return err
	})
	return target, err
}

// open calls use with a file that is opened with O_PATH, without following a link. The path has the root as a prefix, and no links but the
// last component, unless a container has just created one: then the file is missing.
func (v *view) open(name string, use func(*os.File) error) error {
	p, dir := path.Join("/", strings.TrimPrefix(name, v.root)), v.root
	if i := v.containing(p); i >= 0 {
		if v.mounts[i].Type != "bind" {
			return fs.ErrNotExist
		}
		p, dir = strings.TrimPrefix(p, v.places[i].Path), v.mounts[i].Source
	}
	top, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(top)
	fd, err := openLink(top, strings.TrimPrefix(p, "/"))
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return use(f)
}
