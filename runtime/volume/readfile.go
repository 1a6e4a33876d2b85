package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/spec"
)

// MaxFileBytes is the size of the largest file that [Set.ReadFile] reads.
const MaxFileBytes = 1 << 20

// ReadFile returns the content of a regular file in an emptyDir of a pod. As in the kubelet, links are resolved as if the volume were the
// root directory. Other mounts in the volume are not entered. The error for a missing file is [io/fs.ErrNotExist], and [guard.ErrHeld] if a
// container delays those who read the file.
func (s *Set) ReadFile(ctx context.Context, uid string, pod *spec.Pod, volume, file string) ([]byte, error) {
	return withPod(ctx, s, uid, func(ctx context.Context) ([]byte, error) {
		for i := range pod.Volumes {
			if v := &pod.Volumes[i]; v.Name == volume && v.EmptyDir != nil {
				dir := s.path(uid, v)
				return guard.UseFile(ctx, &s.files, filepath.Join(dir, file), func() ([]byte, error) { return readIn(dir, file) })
			}
		}
		return nil, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", volume)
	})
}

// readIn reads a regular file in a directory that containers can change concurrently.
func readIn(dir, file string) ([]byte, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	defer unix.Close(root)
	found, err := openIn(root, file)
	if err != nil {
		return nil, err
	}
	defer unix.Close(found)
	f, err := guard.OpenFound(found, file, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", errors.Unwrap(err))
	}
	if len(text) > MaxFileBytes {
		return nil, fmt.Errorf("larger than %d bytes", MaxFileBytes)
	}
	return text, nil
}

// openIn opens a path with O_PATH, as if root were the root directory.
func openIn(root int, path string) (fd int, err error) {
	for range resolveTries {
		fd, err = unix.Openat2(root, path, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
		})
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return fd, err
}
