package volume

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// failedRetry is the time after which a device that has failed must fail again. The first error may be that of one lost write.
const failedRetry = 2 * time.Second

// HasDevice reports whether a pod has a volume that [Set.Failed] can check.
func HasDevice(pod *spec.Pod) bool {
	return slices.ContainsFunc(pod.Volumes, func(v spec.Volume) bool { return v.HostPath != nil })
}

// Failed returns a message if the device of a host path does not work any more: its file system reports I/O errors, or has shut down. It
// flushes the cache of the device, which a device that has failed answers with an error, while what is read may come from memory. It writes
// nothing of its own.
//
// The device of the state directory is not checked: ending pods does not help if that fails. A device that does not answer has not failed.
func (s *Set) Failed(ctx context.Context, p Pod) (message string, err error) {
	return measure(ctx, s, p.UID, func(ctx context.Context) (string, error) {
		var own unix.Stat_t
		if err := unix.Stat(s.opts.DataDir, &own); err != nil {
			return "", fmt.Errorf("find the device of %s: %w", s.opts.DataDir, err)
		}
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			if v.HostPath == nil || flush(v.HostPath.Path, own.Dev) == nil {
				continue
			}
			retry := time.NewTimer(failedRetry)
			select {
			case <-retry.C:
			case <-ctx.Done():
				retry.Stop()
				return "", ctx.Err()
			}
			if err := flush(v.HostPath.Path, own.Dev); err != nil {
				return fmt.Sprintf("The device of volume %q failed: %s: %v. ", v.Name, v.HostPath.Path, err), nil
			}
		}
		return "", nil
	})
}

// flush flushes the cache of the device of a directory or regular file, unless it is on the device own, or on none. It returns only errors
// that mean that the device has failed.
func flush(path string, own uint64) error {
	found, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return failure(err)
	}
	defer unix.Close(found)
	var st unix.Stat_t
	if err := unix.Fstat(found, &st); err != nil {
		return failure(err)
	}
	kind := st.Mode & unix.S_IFMT
	if st.Dev == own || unix.Major(st.Dev) == 0 || kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return nil
	}
	fd, err := unix.Open(fdPath(found), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return failure(err)
	}
	defer unix.Close(fd)
	return failure(unix.Fsync(fd))
}

// failure returns the errors of a device that has failed, and of a file system that has shut down because of that.
func failure(err error) error {
	if isAny(err, unix.EIO, unix.ENXIO, unix.ENODEV, unix.EROFS, unix.EUCLEAN, unix.ESHUTDOWN) {
		return err
	}
	return nil
}
