package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxDevices is the number of device nodes of a directory. /dev/bus/usb of a large host has some hundreds.
const maxDevices = 1024

// maxDeviceEntries is the number of files of any kind in such a directory.
const maxDeviceEntries = 16 << 10

// node is a device node of the host, with its path in a container.
type node struct {
	oci.Device
	Inode uint64 // devtmpfs gives each node another one
}

func (n *node) sameNumbers(o node) bool {
	return n.Type == o.Type && n.Major == o.Major && n.Minor == o.Minor
}

// sameNode reports whether two nodes have the same path in the container, and the same numbers.
func (n *node) sameNode(o node) bool { return n.Path == o.Path && n.sameNumbers(o) }

// same reports whether two nodes are the same device that was not unplugged in between.
func (n *node) same(o node) bool { return n.sameNode(o) && n.Inode == o.Inode }

// settled reports whether nothing about the nodes differs, also not their owners and modes.
func settled(a, b []node) bool {
	return slices.EqualFunc(a, b, func(x, y node) bool {
		return x.same(y) && x.FileMode != nil && y.FileMode != nil && *x.FileMode == *y.FileMode &&
			x.UID != nil && y.UID != nil && *x.UID == *y.UID && x.GID != nil && y.GID != nil && *x.GID == *y.GID
	})
}

// extends reports whether there is a node that was not there before.
func extends(before, now []node) bool {
	return slices.ContainsFunc(now, func(n node) bool {
		return !slices.ContainsFunc(before, func(b node) bool { return b.same(n) })
	})
}

// unplugged reports whether a device was unplugged: no node is left of it. A node with its path may be another one.
func unplugged(before, now []node) bool { return len(remaining(before, now)) == 0 }

// remaining returns the nodes that were there before.
func remaining(before, now []node) []node {
	return slices.DeleteFunc(slices.Clone(now), func(n node) bool {
		return !slices.ContainsFunc(before, func(b node) bool { return b.same(n) })
	})
}

// grantedDevices returns the nodes of each device of the host that the container names. It waits for none: the failure of one that does not
// exist is [lifecycle.ReasonDeviceMissing], and the container is created later.
func grantedDevices(ctx context.Context, c *spec.Container) ([][]node, error) {
	all := make([][]node, len(c.Devices))
	for i := range c.Devices {
		d := &c.Devices[i]
		if d.CDI != "" { // see [Service.completeCDI]
			continue
		}
		nodes, err := presentNodes(ctx, d)
		if errors.Is(err, errNoDevice) {
			if d.Optional {
				continue
			}
			err = engine.Refused(ctx, lifecycle.ReasonDeviceMissing, err)
		}
		if err != nil {
			return nil, err
		}
		all[i] = nodes
	}
	return all, nil
}

// errNoDevice is the error of a device that does not exist, or of a directory without any.
var errNoDevice = errors.New("no device")

// missingError is an [errNoDevice] with another text.
type missingError struct{ text string }

func (e missingError) Error() string { return e.text }

func (missingError) Is(target error) bool { return target == errNoDevice }

// presentNodes returns the nodes of a device as they are now. The error is [errNoDevice] if there are none.
func presentNodes(ctx context.Context, d *spec.Device) ([]node, error) {
	nodes, err := deviceNodes(ctx, filepath.Clean(d.Path), d.InContainer())
	switch {
	case err == nil && len(nodes) == 0:
		return nil, missingError{"device " + d.Path + ": the directory has no device"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, missingError{"device " + d.Path + " does not exist"}
	}
	for i := range nodes {
		nodes[i].Access = d.Access()
	}
	return nodes, err
}

// nodesOf returns the present nodes of a device; none if it does not exist, or is no device. It returns false if that is not known, such as
// when the daemon has no file descriptor left.
func nodesOf(ctx context.Context, d *spec.Device) (nodes []node, known bool) {
	nodes, err := presentNodes(ctx, d)
	return nodes, err == nil || errors.Is(err, errNoDevice) || errors.Is(err, errNotNode)
}

// deviceNodes returns the device nodes at or below a path of the host, whose links it resolves, with their paths in the container. In a
// directory, what is neither a node, a link to one, nor a directory is left out.
func deviceNodes(ctx context.Context, path, inContainer string) ([]node, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, deviceError(path, err)
	}
	if !info.IsDir() {
		n, err := deviceNode(path, inContainer)
		if err != nil {
			return nil, deviceError(path, err)
		}
		return []node{n}, nil
	}
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, deviceError(path, err)
	}
	var nodes []node
	entries := 0
	err = filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		if entries++; err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if entries > maxDeviceEntries {
			return fmt.Errorf("more than %d files", maxDeviceEntries)
		}
		if entry.IsDir() {
			if p != root && slices.Contains(noDevices, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		n, err := deviceNode(p, filepath.Join(inContainer, p[len(root):]))
		switch {
		case errors.Is(err, errNotNode), errors.Is(err, fs.ErrNotExist): // a file, or a node that is gone by now
			return nil
		case err != nil:
			return err
		case len(nodes) == maxDevices:
			return fmt.Errorf("more than %d devices", maxDevices)
		}
		nodes = append(nodes, n)
		return nil
	})
	if err != nil {
		return nil, deviceError(path, err)
	}
	return nodes, nil
}

// noDevices are directories in /dev with what belongs to the host's own processes.
var noDevices = []string{"fd", "mqueue", "pts", "shm"}

// errNotNode is the error of a path that leads to something else than a device.
var errNotNode = errors.New("must be a device node, or a directory with some")

// deviceNode returns the device node to which a path leads.
func deviceNode(path, inContainer string) (node, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return node{}, err
	}
	var stat unix.Stat_t
	if err := unix.Lstat(real, &stat); err != nil {
		return node{}, err
	}
	n := node{oci.Device{LinuxDevice: specs.LinuxDevice{Path: inContainer}, Source: real}, stat.Ino}
	if !n.set(&stat) {
		return node{}, errNotNode
	}
	mode := fs.FileMode(stat.Mode & 0o777)
	n.FileMode, n.UID, n.GID = &mode, &stat.Uid, &stat.Gid
	return n, nil
}

func deviceError(path string, err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOTDIR) {
		err = fs.ErrNotExist
	}
	return fmt.Errorf("device %s: %w", path, err)
}

// isIn reports whether a container has the node.
func (n *node) isIn(root int) bool {
	has := *n
	return has.read(root) && has.sameNumbers(*n)
}

// read sets the type and the numbers of a node to those that the node with its path has in a container, and reports whether there is one.
func (n *node) read(root int) bool {
	dir, err := inRoot(root, filepath.Dir(n.Path))
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	var stat unix.Stat_t
	return unix.Fstatat(dir, filepath.Base(n.Path), &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && n.set(&stat)
}

// set sets the type and the numbers of a node to those of a file, and reports whether that is a node.
func (n *node) set(stat *unix.Stat_t) bool {
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFCHR && kind != unix.S_IFBLK {
		return false
	}
	n.Type, n.Major, n.Minor = "c", int64(unix.Major(stat.Rdev)), int64(unix.Minor(stat.Rdev))
	if kind == unix.S_IFBLK {
		n.Type = "b"
	}
	return true
}

// makeIn makes the node in a container, in the place of one that is there, with the owner and the mode that it has on the host.
func (n *node) makeIn(root int) error {
	if err := makeDirs(root, filepath.Dir(n.Path)); err != nil {
		return err
	}
	dir, err := inRoot(root, filepath.Dir(n.Path))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	name := filepath.Base(n.Path)
	next := "." + name + ".podstead"
	kind := uint32(unix.S_IFCHR)
	if n.Type == "b" {
		kind = unix.S_IFBLK
	}
	fail := func(err error) error {
		_ = unix.Unlinkat(dir, next, 0)
		return fmt.Errorf("make %s in the container: %w", n.Path, err)
	}
	_ = unix.Unlinkat(dir, next, 0) // of an attempt that was interrupted
	if err := unix.Mknodat(dir, next, kind|0o600, int(unix.Mkdev(uint32(n.Major), uint32(n.Minor)))); err != nil {
		return fail(err)
	}
	if err := n.setOwner(dir, next); err != nil {
		return fail(err)
	}
	if err := unix.Renameat(dir, next, dir, name); err != nil {
		return fail(err)
	}
	return nil
}

// setOwner gives a node that was made in a container the owner and the mode that it has on the host. The container can replace what has
// the name, but not what was opened.
func (n *node) setOwner(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if !n.is(&stat) {
		return errors.New("the container has replaced it")
	}
	if err := unix.Fchownat(fd, "", int(*n.UID), int(*n.GID), unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), uint32(n.FileMode.Perm())) // fchmodat2(2) is of Linux 6.6
}

// is reports whether a file is a node of the same device.
func (n *node) is(stat *unix.Stat_t) bool {
	var other node
	return other.set(stat) && other.sameNumbers(*n)
}

// rule returns a rule of the devices controller of cgroup v1.
func (n *node) rule(access string) string {
	return fmt.Sprintf("%s %d:%d %s", n.Type, n.Major, n.Minor, access)
}
