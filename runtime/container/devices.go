package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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
