package volume

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// mountRegion is a directory tree or a file, where it is in its file system. Bind mounts make it visible at several paths, the region is
// the same.
type mountRegion struct {
	major, minor int
	path         string
}

// Overlaps reports whether one of the regions contains the other.
func (r mountRegion) Overlaps(o mountRegion) bool {
	return r.major == o.major && r.minor == o.minor && (isBelow(r.path, o.path) || isBelow(o.path, r.path))
}

// mountList are the mounts of this process at one moment.
type mountList []*mountinfo.Info

// listMounts returns the current mounts.
func listMounts() (mountList, error) {
	list, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return list, nil
}

// Of returns the mount of an open file or directory.
func (l mountList) Of(fd int) (*mountinfo.Info, error) {
	var stat unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat); err != nil {
		return nil, fmt.Errorf("find mount: %w", err)
	}
	for _, m := range l {
		if uint64(m.ID) == stat.Mnt_id {
			return m, nil
		}
	}
	return nil, fmt.Errorf("mount %d not found", stat.Mnt_id)
}

// Region returns where an open file or directory is, and its path without links.
func (l mountList) Region(fd int) (real string, region mountRegion, err error) {
	real, err = os.Readlink(fdPath(fd))
	if err != nil {
		return "", mountRegion{}, err
	}
	m, err := l.Of(fd)
	if err != nil {
		return "", mountRegion{}, fmt.Errorf("%s: %w", real, err)
	}
	below, err := filepath.Rel(m.Mountpoint, real)
	return real, mountRegion{m.Major, m.Minor, path.Join(m.Root, below)}, err
}

// Below returns what is mounted below a directory. A recursive bind mount of the directory includes these regions.
func (l mountList) Below(dir string) []mountRegion {
	var regions []mountRegion
	for _, m := range l {
		if m.Mountpoint != dir && isBelow(m.Mountpoint, dir) {
			regions = append(regions, mountRegion{m.Major, m.Minor, m.Root})
		}
	}
	return regions
}
