package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/record"
)

var (
	errMountedNode = errors.New("nodes are mounted in a user namespace")
	errFixedRights = errors.New("the rights of a running container cannot be changed with cgroup v2")
)

// plugIn gives a running container the nodes of a device, unless it is restarted for that. It returns the outcome for people.
func (w *deviceWatch) plugIn(ctx context.Context, device int, nodes []node) string {
	if w.order.Definition.Devices[device].Restarts() {
		return "the container gets it when it starts again"
	}
	ctx, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	updated, err := w.update(ctx, device, nodes)
	switch {
	case err != nil:
		return "the container gets it when it starts again: " + err.Error()
	case updated:
		return "the container has its new node"
	}
	return ""
}

// update makes nodes in a running container, with the rights to use them. Nodes with the same numbers need nothing.
func (w *deviceWatch) update(ctx context.Context, device int, nodes []node) (updated bool, err error) {
	s, ref := w.service, w.order.Ref
	unlock, err := s.locks.Lock(ctx, w.uid+"/"+ref.Container)
	if err != nil {
		return false, err
	}
	defer unlock()
	id := record.ContainerID(w.uid, ref)
	root, mounted, err := s.openRoot(ctx, id, w.uid)
	if err != nil {
		return false, err
	}
	defer unix.Close(root)
	if mounted {
		if w.holds(device, nodes) {
			return false, nil
		}
		return false, errMountedNode
	}
	return w.updateIn(ctx, root, id, device, nodes)
}

// holds reports whether the container has all nodes. The node of a device that was unplugged works again when another one has its numbers.
func (w *deviceWatch) holds(device int, nodes []node) bool {
	return !slices.ContainsFunc(nodes, func(n node) bool { return !slices.ContainsFunc(w.Held[device], n.sameNode) })
}

// updateIn is update with the root directory of the container. The rights do not depend on what nodes the container has: it can make some.
func (w *deviceWatch) updateIn(ctx context.Context, root int, id string, device int, nodes []node) (updated bool, err error) {
	if !oci.Privileged(w.order.Definition) {
		if err := w.grant(ctx, id, device, nodes); err != nil {
			return false, err
		}
	}
	for i := range nodes {
		if nodes[i].isIn(root) {
			continue
		}
		if err := nodes[i].makeIn(root); err != nil {
			return false, err
		}
		updated = true
	}
	return updated, nil
}

// openRoot opens the root directory of a running container, and reports whether nodes are mounted in it, since it has a user namespace.
// The process ID can be reused by another process until the process has a descriptor, therefore the process must be in the cgroup of the
// container, and run after that was checked.
func (s *Service) openRoot(ctx context.Context, id, uid string) (fd int, mounted bool, err error) {
	c, err := s.config.Client.LoadContainer(ctx, id)
	if err != nil {
		return -1, false, err
	}
	task, err := s.config.Exits.Task(ctx, c)
	if err != nil {
		return -1, false, err
	}
	pid := int(task.Pid())
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, false, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(process)
	mounted = userNamespace(pid) != userNamespace(os.Getpid())
	fd, err = unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, false, errTargetExited
	}
	list, err := proctree.List(s.config.Cgroups.ProcessDir(uid, id))
	if err == nil && (!slices.ContainsFunc(list, func(p proctree.Process) bool { return p.PID == pid }) ||
		unix.PidfdSendSignal(process, 0, nil, 0) != nil) {
		err = errTargetExited
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, false, err
	}
	return fd, mounted, nil
}

// userNamespace returns the user namespace of a process; empty if it has exited.
func userNamespace(pid int) string {
	name, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/user")
	if err != nil {
		return ""
	}
	return name
}

// inRoot opens a directory of a container. The container may have replaced it by a link, which is not followed.
func inRoot(root int, dir string) (fd int, err error) {
	fd, err = unix.Openat2(root, dir, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, fmt.Errorf("open %s in the container: %w", dir, err)
	}
	return fd, nil
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

// makeDirs makes the directories of a path in a container that do not exist.
func makeDirs(root int, path string) error {
	if path == "/" {
		return nil
	}
	if dir, err := inRoot(root, path); err == nil {
		_ = unix.Close(dir)
		return nil
	}
	if err := makeDirs(root, filepath.Dir(path)); err != nil {
		return err
	}
	parent, err := inRoot(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	if err := unix.Mkdirat(parent, filepath.Base(path), 0o755); err != nil {
		return fmt.Errorf("make directory %s in the container: %w", path, err)
	}
	return nil
}

// grant gives a container the rights to the nodes of a device, and takes those to the numbers that the device had: they may be of another
// one now. A right is recorded before the container has it.
func (w *deviceWatch) grant(ctx context.Context, id string, device int, nodes []node) error {
	old := slices.DeleteFunc(slices.Clone(w.Held[device]), func(n node) bool { return slices.ContainsFunc(nodes, n.sameNumbers) })
	if len(old) == 0 && w.holds(device, nodes) {
		return nil
	}
	dirs, err := cgroup.Dirs(w.service.config.Cgroups.Container(w.uid, id))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "devices.allow")) // of the controller of cgroup v1
		return err == nil
	})
	if i < 0 {
		if w.holds(device, nodes) { // some of the nodes of a directory
			return nil
		}
		return errFixedRights
	}
	w.Held[device], w.unsaved = append(old, nodes...), true
	if err := w.save(ctx); err != nil {
		return err
	}
	return w.setRights(dirs[i], device, old, nodes)
}

// setRights writes rights to the devices controller of cgroup v1.
func (w *deviceWatch) setRights(dir string, device int, old, nodes []node) error {
	for i := range old {
		if err := cgroup.Write(filepath.Join(dir, "devices.deny"), old[i].rule("rwm")); err != nil {
			return err
		}
	}
	w.Held[device], w.unsaved = nodes, true
	for i := range w.Held { // other devices of the container may have the numbers, too
		for k := range w.Held[i] {
			n := &w.Held[i][k]
			if i != device && !slices.ContainsFunc(old, n.sameNumbers) {
				continue
			}
			if err := cgroup.Write(filepath.Join(dir, "devices.allow"), n.rule(n.Access)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rule returns a rule of the devices controller of cgroup v1.
func (n *node) rule(access string) string {
	return fmt.Sprintf("%s %d:%d %s", n.Type, n.Major, n.Minor, access)
}
