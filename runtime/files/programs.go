package files

import (
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
)

const (
	// programsTimeout bounds how long the files of an image are looked at.
	programsTimeout = 10 * time.Second
	// viewLease is how long a view of an image can outlive a killed daemon.
	viewLease = 10 * time.Minute
)

// Programs returns where programs are in an unpacked image, as the start of a process finds them: by an absolute path, or by a name in one
// of the directories, which are absolute. The path of a program that is missing is empty. The map is nil if the snapshot does not exist.
func (s *Service) Programs(ctx context.Context, snapshot string, directories, names []string) (found map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, programsTimeout)
	defer cancel()
	ctx, release, err := s.config.Client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(viewLease))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release(context.WithoutCancel(ctx))) }()
	snapshotter := s.config.Client.SnapshotService(s.config.Snapshotter)
	key := "programs-" + rand.Text()
	mounts, err := snapshotter.View(ctx, key, snapshot)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("view image: %w", err)
	}
	defer func() { err = errors.Join(err, snapshotter.Remove(context.WithoutCancel(ctx), key)) }()
	fd, err := s.mountDetached(mounts)
	if err != nil {
		return nil, fmt.Errorf("mount image: %w", err)
	}
	root := os.NewFile(uintptr(fd), "image")
	defer root.Close()
	found = make(map[string]string, len(names))
	for _, name := range names {
		found[name] = ""
		candidates := []string{name}
		if !path.IsAbs(name) {
			candidates = nil
			for _, dir := range directories {
				candidates = append(candidates, path.Join(dir, name))
			}
		}
		for _, candidate := range candidates {
			if isProgram(root, candidate) {
				found[name] = candidate
				break
			}
		}
	}
	return found, nil
}

// isProgram reports whether a path below root leads to a regular file that somebody may execute. Links are resolved below root.
func isProgram(root *os.File, name string) bool {
	fd, err := unix.Openat2(int(root.Fd()), name, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	err = unix.Fstat(fd, &stat)
	return err == nil && stat.Mode&unix.S_IFMT == unix.S_IFREG && stat.Mode&0o111 != 0
}
