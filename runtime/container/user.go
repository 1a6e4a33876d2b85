package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/oci"
)

// withUser sets the user of a container, looked up in the image's /etc/passwd and /etc/group.
func withUser(u oci.User) containerdoci.SpecOpts {
	opts := []containerdoci.SpecOpts{withUserFiles, containerdoci.WithUser(u.Primary)}
	if u.Member != "" {
		opts = append(opts, containerdoci.WithAdditionalGIDs(u.Member))
	}
	return containerdoci.Compose(append(opts, withGroups(u.Groups))...)
}

// withGroups adds supplementary groups.
func withGroups(groups []uint32) containerdoci.SpecOpts {
	return func(_ context.Context, _ containerdoci.Client, _ *containers.Container, s *specs.Spec) error {
		all := append(s.Process.User.AdditionalGids, groups...)
		slices.Sort(all)
		s.Process.User.AdditionalGids = slices.Compact(all)
		return nil
	}
}

// withUserFiles returns an error if /etc/passwd or /etc/group of the image is not a regular file. containerd opens them without a check,
// which blocks forever for a FIFO and has side effects for a device. It also returns an error if /dev, /proc or /sys is a symbolic link: runc
// before 1.3.6 and 1.4.3 follows one at /dev to the host (CVE-2026-41579).
func withUserFiles(ctx context.Context, client containerdoci.Client, c *containers.Container, _ *specs.Spec) error {
	mounts, err := client.SnapshotService(c.Snapshotter).Mounts(ctx, c.SnapshotKey)
	if err != nil {
		return err
	}
	return mount.WithReadonlyTempMount(ctx, mounts, func(root string) error {
		dir, err := os.Open(root)
		if err != nil {
			return err
		}
		defer dir.Close()
		return errors.Join(checkFile(dir, "/etc/passwd"), checkFile(dir, "/etc/group"), checkDirectory(dir, "dev"), checkDirectory(dir, "proc"), checkDirectory(dir, "sys"))
	})
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
