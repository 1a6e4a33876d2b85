package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/internal/inroot"
	"github.com/podstead/podstead/runtime/netns"
)

// openStopped mounts the writable layer of a container that is not running.
//
// The volumes of the container are not mounted. Below their mount points, the layer has other files than the container had. Therefore each
// mount point is covered by a file system whose files package inroot refuses: the kernel decides whether a path leads there, whatever links
// the container has left.
func (s *Service) openStopped(ctx context.Context, info containers.Container, c *container) error {
	mounts, err := s.config.Client.SnapshotService(s.config.Snapshotter).Mounts(ctx, info.SnapshotKey)
	if errdefs.IsNotFound(err) {
		return &filecopy.Error{Kind: filecopy.Conflict, Err: errors.New("the files of the container were removed")}
	}
	if err != nil {
		return err
	}
	layer, err := s.mountDetached(mounts)
	if err != nil {
		return fmt.Errorf("mount writable layer: %w", err)
	}
	defer unix.Close(layer)
	var points []string
	for _, m := range c.spec.Mounts {
		points = append(points, m.Destination)
	}
	err = netns.OnOwnThread(func() error {
		c.held, c.root, err = enter(s.config.Dir, layer, points)
		return err
	})
	if err != nil {
		return fmt.Errorf("mount writable layer: %w", err)
	}
	return nil
}

// mountDetached mounts at a temporary mount point, and returns a descriptor of the mount, which ends with the descriptor.
func (s *Service) mountDetached(mounts []mount.Mount) (fd int, err error) {
	dir, err := os.MkdirTemp(s.config.Dir, "")
	if err != nil {
		return -1, err
	}
	defer func() { err = errors.Join(err, unmount(dir)) }()
	if err := mount.All(mounts, dir); err != nil {
		return -1, err
	}
	return unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
}

// unmount removes a mount point, mounted or not.
func unmount(dir string) error {
	if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return os.Remove(dir)
}

// clearMounts creates the directory of mount points, and removes those that are left in it.
func clearMounts(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, unmount(filepath.Join(dir, e.Name())))
	}
	return err
}

// enter creates a mount namespace that has the layer and what covers its mount points, and returns it with its root directory. The thread must
// end afterwards.
func enter(dir string, layer int, points []string) (namespace *os.File, root *inroot.Root, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return nil, nil, fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, nil, fmt.Errorf("isolate mounts: %w", err)
	}
	if namespace, err = os.Open("/proc/thread-self/ns/mnt"); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = namespace.Close()
		}
	}()
	device, err := mountCover(dir)
	if err != nil {
		return nil, nil, err
	}
	top := filepath.Join(dir, "root")
	if err := unix.MoveMount(layer, "", unix.AT_FDCWD, top, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, nil, fmt.Errorf("move mount: %w", err)
	}
	if err := coverAll(dir, top, points); err != nil {
		return nil, nil, err
	}
	if err := pivot(top); err != nil {
		return nil, nil, err
	}
	f, err := os.Open("/")
	if err != nil {
		return nil, nil, err
	}
	root = inroot.New(f)
	root.Cover(device)
	return namespace, root, nil
}

// mountCover mounts the file system that covers mount points, with a directory, a file and the mount point of the layer.
func mountCover(dir string) (device uint64, err error) {
	if err := unix.Mount("podstead-cover", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700,size=64k"); err != nil {
		return 0, fmt.Errorf("mount %s: %w", dir, err)
	}
	var s unix.Stat_t
	err = errors.Join(
		os.Mkdir(filepath.Join(dir, "root"), 0o700), os.Mkdir(filepath.Join(dir, "dir"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		unix.Stat(dir, &s),
	)
	return s.Dev, err
}

// coverAll covers the mount points of a container in its layer. A mount point that no path reaches needs no cover.
func coverAll(dir, top string, points []string) error {
	f, err := os.Open(top)
	if err != nil {
		return err
	}
	layer := inroot.New(f)
	defer layer.Close()
	for _, point := range points {
		at, err := layer.Open(point)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue
		}
		if err != nil {
			return err
		}
		if err := cover(dir, at); err != nil {
			return fmt.Errorf("cover %s: %w", point, err)
		}
	}
	return nil
}

func cover(dir string, at *inroot.File) error {
	defer at.Close()
	name := "file"
	if at.IsDir() {
		name = "dir"
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, filepath.Join(dir, name), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// pivot makes a mount point the root directory of the namespace, and unmounts everything else in it.
func pivot(top string) error {
	if err := unix.Chdir(top); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount host: %w", err)
	}
	return nil
}
