package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// stopped is a container that is not running.
type stopped struct {
	info      containers.Container
	uid, name string
	pod       *spec.Pod // as it was when the container was created
}

// openStopped mounts the writable layer and the volumes of a container that is not running.
//
// Other mounts, such as /proc and /etc/hosts, and volumes that are not available, are not mounted. Below their mount points, the layer has
// other files than the container had. Therefore each of these mount points is covered by a file system that paths must not lead to,
// whatever links the container has left.
func (s *Service) openStopped(ctx context.Context, o stopped, c *container) (err error) {
	mounts, err := s.config.Client.SnapshotService(s.config.Snapshotter).Mounts(ctx, o.info.SnapshotKey)
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
	if c.spec.Root != nil && c.spec.Root.Readonly {
		if err := volume.MakeMountReadOnly(layer); err != nil {
			return fmt.Errorf("make writable layer read-only: %w", err)
		}
	}
	volumes, missing, release, err := s.mountVolumes(ctx, o, c.ids)
	if err != nil {
		return err
	}
	c.missing = missing
	defer func() { err = errors.Join(err, release()) }()
	err = namespace.OnOwnThread(func() error {
		c.held, c.root, err = enter(s.config.Dir, layer, pointsOf(o.pod.Container(o.name), c.spec.Mounts, volumes))
		return err
	})
	if err != nil {
		return fmt.Errorf("mount writable layer: %w", err)
	}
	return nil
}

// mountVolumes mounts the volumes of a container. The mounts last until release is called.
func (s *Service) mountVolumes(ctx context.Context, o stopped, ids namespace.IDRange) (
	mounts []specs.Mount, missing map[string]error, release func() error, err error,
) {
	users := ""
	if ids.First != 0 { // that of the sandbox does not exist any more
		mapping := fmt.Sprintf("0:%d:%d", ids.First, namespace.IDRangeSize)
		f, err := mount.GetUsernsFD(mapping, mapping)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("create user namespace: %w", err)
		}
		defer f.Close()
		users = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	}
	copies := fmt.Sprintf("%s.copy%d", o.info.ID, s.number.Add(1))
	mounts, missing, release, err = s.config.Volumes(ctx, o.uid, o.pod, o.name, copies, users)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("mount volumes: %w", err)
	}
	return mounts, missing, release, nil
}

// withCause adds why the volume is not available to the error for a file in it. A path that leads to it by a symbolic link has no cause.
func (c *container) withCause(err error) error {
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(p.Err, filecopy.ErrCovered) {
		return err
	}
	for at := path.Clean(p.Path); path.IsAbs(at); at = path.Dir(at) {
		if cause := c.missing[at]; cause != nil { // its kind says nothing about the file
			return &fs.PathError{
				Op: p.Op, Path: p.Path,
				Err: fmt.Errorf("%w: the volume at %s is not available: %s", filecopy.ErrCovered, at, cause.Error()),
			}
		}
		if at == "/" {
			break
		}
	}
	return err
}

// point is a mount point of a container. It is covered if it has no volume.
type point struct {
	path   string
	volume *specs.Mount
}

// pointsOf returns the mount points of a container, outer ones first. All are those of its volumes, which OCI runtimes do not mount
// themselves if they are inside of others, and those in its specification.
func pointsOf(c *spec.Container, mounts, volumes []specs.Mount) []point {
	var points []point
	add := func(p string, volume *specs.Mount) {
		if p = path.Join("/", p); !slices.ContainsFunc(points, func(other point) bool { return other.path == p }) {
			points = append(points, point{p, volume})
		}
	}
	for i := range volumes {
		add(volumes[i].Destination, &volumes[i])
	}
	for i := range c.VolumeMounts {
		add(c.VolumeMounts[i].MountPath, nil)
	}
	for i := range mounts {
		add(mounts[i].Destination, nil)
	}
	order.Sort(points, func(a, b point) int { return cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")) })
	return points
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

// enter creates a mount namespace that has the layer and what is mounted in it, and returns it with its root directory. The thread must
// end afterwards.
func enter(dir string, layer int, points []point) (namespace *os.File, root *filecopy.Root, err error) {
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
	if err := mountAll(dir, top, points); err != nil {
		return nil, nil, err
	}
	if err := pivot(top); err != nil {
		return nil, nil, err
	}
	f, err := os.Open("/")
	if err != nil {
		return nil, nil, err
	}
	root = filecopy.NewRoot(f)
	root.Exclude(device)
	return namespace, root, nil
}

// mountCover mounts the file system that covers mount points, with a directory, a file and the mount point of the layer. It returns its
// device.
func mountCover(dir string) (device uint64, err error) {
	if err := unix.Mount("podstead-cover", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700,size=64k"); err != nil {
		return 0, fmt.Errorf("mount %s: %w", dir, err)
	}
	var stat unix.Stat_t
	err = unix.Stat(dir, &stat)
	return uint64(stat.Dev), errors.Join( //nolint:unconvert // other architectures have another type
		err, os.Mkdir(filepath.Join(dir, "root"), 0o700), os.Mkdir(filepath.Join(dir, "dir"), 0o700),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
	)
}

// mountAll mounts the volumes of a container on their mount points in its layer, and covers the other mount points. Paths are resolved in
// the layer and what is mounted in it already. A mount point that no path reaches needs no mount.
func mountAll(dir, top string, points []point) error {
	f, err := os.Open(top)
	if err != nil {
		return err
	}
	layer := filecopy.NewRoot(f)
	defer layer.Close()
	for _, p := range points {
		at, err := layer.Open(p.path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
			errors.Is(err, filecopy.ErrKernel) {
			continue
		}
		if err != nil {
			return err
		}
		if p.volume == nil {
			err = cover(dir, at)
		} else {
			err = attach(p.volume, at)
		}
		if err != nil {
			return fmt.Errorf("mount on %s: %w", p.path, err)
		}
	}
	return nil
}

// attach mounts a volume with its options. Nothing that is mounted later on the host or here propagates.
func attach(m *specs.Mount, at *filecopy.File) error {
	defer at.Close()
	options := slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return o == "rslave" || o == "rshared" })
	fd, err := volume.AttachMount(m.Source, int(at.Fd()), options)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func cover(dir string, at *filecopy.File) error {
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
