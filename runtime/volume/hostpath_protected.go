package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// isPrivileged reports whether a container is allowed to mount protected paths: it can reach them anyway.
func isPrivileged(c *spec.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

// checkProtected returns an error if an open host path overlaps a protected path, also through links and bind mounts.
func (s *Set) checkProtected(fd int) error {
	if len(s.opts.Protected) == 0 {
		return nil
	}
	mounts, err := listMounts()
	if err != nil {
		return err
	}
	real, own, err := mounts.Region(fd)
	if err != nil {
		return err
	}
	regions := append(mounts.Below(real), own)
	for _, path := range s.opts.Protected {
		place, protected, err := regionOf(mounts, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(real, place+"/") || slices.ContainsFunc(regions, protected.Overlaps) { // or on a mount below it
			return fmt.Errorf("hostPath %q overlaps Podstead's path %q, only privileged containers can mount it", real, path)
		}
	}
	return nil
}

// regionOf is [mountList.Region] for a path.
func regionOf(mounts mountList, path string) (string, mountRegion, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", mountRegion{}, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	return mounts.Region(fd)
}
