package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
)

const (
	// programsTimeout bounds how long the files of an image are looked at.
	programsTimeout = 10 * time.Second
	// viewLease is how long a view of an image can outlive a killed daemon.
	viewLease = 10 * time.Minute
	// maxViews is the maximum number of images that are looked at at the same time. Others wait.
	maxViews = 2
	// maxRaces bounds the attempts to open a file while files are being renamed.
	maxRaces = 1000
)

// Programs returns where programs are in an unpacked image, as the start of a process finds them: by an absolute path, or by a name in one
// of the directories, which are absolute. The path of a program that is missing is empty. The map is nil if the snapshot does not exist.
func (s *Service) Programs(ctx context.Context, snapshot string, directories, names []string) (found map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, programsTimeout)
	defer cancel()
	if err := s.views.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.views.Release(1)
	ctx, release, err := s.config.Client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(viewLease))
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := engine.Detached(ctx, engine.UndoTimeout)
		defer cancel()
		err = errors.Join(err, release(ctx))
	}()
	snapshotter := s.config.Client.SnapshotService(s.config.Snapshotter)
	key := "programs-" + rand.Text()
	mounts, err := snapshotter.View(ctx, key, snapshot)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("view image: %w", err)
	}
	defer func() {
		ctx, cancel := engine.Detached(ctx, engine.UndoTimeout)
		defer cancel()
		err = errors.Join(err, snapshotter.Remove(ctx, key))
	}()
	fd, err := s.mountDetached(mounts)
	if err != nil {
		return nil, fmt.Errorf("mount image: %w", err)
	}
	root := os.NewFile(uintptr(fd), "image")
	defer root.Close()
	found = make(map[string]string, len(names))
	for _, name := range names {
		if found[name], err = findProgram(ctx, root, directories, name); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// findProgram returns the path of a program below root; empty: it is missing.
func findProgram(ctx context.Context, root *os.File, directories []string, name string) (string, error) {
	if path.IsAbs(name) {
		directories = []string{""}
	}
	for _, dir := range directories {
		at := path.Join(dir, name)
		is, err := isProgram(root, at)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return "", fmt.Errorf("program %q of the image: %w", at, err)
		}
		if is {
			return at, nil
		}
	}
	return "", nil
}

// isProgram reports whether a path below root leads to a regular file that somebody may execute. Links are resolved below root.
func isProgram(root *os.File, name string) (bool, error) {
	var fd int
	err := error(unix.EAGAIN) // with "..", while anything is renamed or mounted on the host
	for i := 0; i < maxRaces && (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)); i++ {
		fd, err = unix.Openat2(int(root.Fd()), name, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
		})
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENAMETOOLONG):
		return false, nil
	case err != nil:
		return false, err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return false, err
	}
	return stat.Mode&unix.S_IFMT == unix.S_IFREG && stat.Mode&0o111 != 0, nil
}
