package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// MaxFileBytes is the size of the largest file that [Set.ReadFile] reads.
const MaxFileBytes = 1 << 20

// ReadFile returns the content of a regular file in an emptyDir of a pod. As in the kubelet, links are resolved as if the volume were the
// root directory. Other mounts in the volume are not entered. The error for a missing file is [io/fs.ErrNotExist].
func (s *Set) ReadFile(ctx context.Context, uid string, pod *spec.Pod, volume, file string) ([]byte, error) {
	return withPod(ctx, s, uid, func(context.Context) ([]byte, error) {
		for i := range pod.Volumes {
			if v := &pod.Volumes[i]; v.Name == volume && v.EmptyDir != nil {
				return readIn(s.path(uid, v), file)
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
		return nil, fmt.Errorf("open: %w", err)
	}
	defer unix.Close(found)
	// The type of what O_PATH has found does not change. Opening a FIFO could block, and a device has side effects.
	var stat unix.Stat_t
	if err := unix.Fstat(found, &stat); err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(fdPath(found))
	if err != nil {
		return nil, fmt.Errorf("open: %w", errors.Unwrap(err)) // without the path of the descriptor
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
