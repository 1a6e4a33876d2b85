package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// withRoot completes a specification with the root file system of the container: it fills the volumes that the image defines, makes the
// mounts inside of volumes, and looks up the user. It returns an error if the image contains files that are unsafe to use.
func (s *Service) withRoot(n *creation) containerdoci.SpecOpts {
	return func(ctx context.Context, client containerdoci.Client, c *containers.Container, result *specs.Spec) error {
		mounts, err := client.SnapshotService(c.Snapshotter).Mounts(ctx, c.SnapshotKey)
		if err != nil {
			return err
		}
		if n.ids.Kept != 0 {
			if err := mount.WithTempMount(ctx, mounts, func(root string) error { return keepOwners(ctx, root, n.ids) }); err != nil {
				return fmt.Errorf("change owners for keepID: %w", err)
			}
		}
		var noUser error // returned without the path of the mount
		// Volumes have the IDs of the image, and are mounted id-mapped.
		err = mount.WithReadonlyTempMount(ctx, mount.RemoveIDMapOption(mounts), func(root string) error {
			if err := checkRoot(root); err != nil {
				return err
			}
			if err := s.config.Volumes.FillImageDefined(ctx, n.uid, n.id, root, n.imageDefined); err != nil {
				return err
			}
			left, err := s.config.Volumes.Nest(ctx, n.volumes, n.request, root, result.Mounts)
			if err != nil {
				return engine.Refused(ctx, lifecycle.ReasonCreateConfigError, n.values.Redact(err))
			}
			result.Mounts = left
			files, err := os.OpenRoot(root)
			if err != nil {
				return err
			}
			defer files.Close()
			if noUser = setUser(result, files.FS(), n.user, n.container.Image); noUser == nil && n.edits != nil {
				return applyEdits(result, n.edits)
			}
			return nil
		})
		if err == nil {
			err = noUser
		}
		return err
	}
}

// keepOwners changes the owners of the files that belong to the user or the group with the ID that the pod keeps: in the pod, this is the
// daemon's own ID. Files of root belong to the same user then, without a change.
func keepOwners(ctx context.Context, root string, ids namespace.IDRange) error {
	keep := func(id uint32) int {
		if id == ids.Kept {
			return 0
		}
		return -1
	}
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err = cmp.Or(err, ctx.Err()); err == nil {
			err = unix.Lstat(path, &st)
		}
		if err != nil {
			return err
		}
		uid, gid := keep(st.Uid), keep(st.Gid)
		if uid < 0 && gid < 0 {
			return nil
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return os.Lchown(path, uid, gid)
		}
		capabilities, err := fileCapabilities(path)
		if err == nil {
			err = os.Lchown(path, uid, gid)
		}
		// The change of the owner has cleared what follows.
		if err == nil && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			err = unix.Chmod(path, st.Mode&0o7777)
		}
		if err == nil && capabilities != nil {
			err = os.NewSyscallError("setxattr", unix.Lsetxattr(path, capabilityAttribute, capabilities, 0))
		}
		return err
	})
}

// capabilityAttribute is the extended attribute with the capabilities of a program, see capabilities(7).
const capabilityAttribute = "security.capability"

// fileCapabilities returns the attribute with the capabilities of a file; nil: it has none.
func fileCapabilities(path string) ([]byte, error) {
	value := make([]byte, 64) // the versions have up to 24 bytes
	n, err := unix.Lgetxattr(path, capabilityAttribute, value)
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return nil, nil
	case err != nil:
		return nil, os.NewSyscallError("getxattr", err)
	}
	return value[:n], nil
}

// checkRoot returns an error if /etc/passwd or /etc/group of the image is not a regular file. containerd opens them before it checks their
// type, which blocks forever for a FIFO and has side effects for a device. It also returns an error if /dev, /proc or /sys is a symbolic
// link: runc before 1.3.6 and 1.4.3 follows one at /dev to the host (CVE-2026-41579).
func checkRoot(root string) error {
	dir, err := os.Open(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	return errors.Join(checkFile(dir, "/etc/passwd"), checkFile(dir, "/etc/group"), checkDirectory(dir, "dev"),
		checkDirectory(dir, "proc"), checkDirectory(dir, "sys"))
}

// checkDirectory returns an error if an entry of root exists and is not a directory.
func checkDirectory(root *os.File, name string) error {
	var stat unix.Stat_t
	err := unix.Fstatat(int(root.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("/%s of the image: %w", name, err)
	case stat.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("/%s of the image is not a directory", name)
	}
	return nil
}

// checkFile returns an error if a path below root exists and is not a regular file. The file is not opened, and symbolic links are resolved
// below root.
func checkFile(root *os.File, path string) error {
	fd, err := unix.Openat2(int(root.Fd()), path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s of the image: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("%s of the image: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%s of the image is not a regular file", path)
	}
	return nil
}

// openRoot opens the root directory of a running container, and reports whether nodes are mounted in it, since it has a user namespace.
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
	err = proctree.While(s.config.Cgroups.ProcessDir(uid, id), pid, func() (err error) {
		mounted = userNamespace(pid) != userNamespace(os.Getpid())
		fd, err = unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return proctree.ErrExited
		}
		return nil
	})
	if err == nil {
		return fd, mounted, nil
	}
	if fd > 0 {
		_ = unix.Close(fd)
	}
	if errors.Is(err, proctree.ErrExited) {
		err = errTargetExited
	}
	return -1, false, err
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
