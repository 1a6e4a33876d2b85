package mountpoint

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/tree"
)

// Region is a directory tree or a file, where it is in its file system. Bind mounts make it visible at several paths, the region is the
// same.
type Region struct {
	major, minor int
	path         string
}

// Overlaps reports whether one of the regions contains the other.
func (r Region) Overlaps(o Region) bool {
	return r.major == o.major && r.minor == o.minor && (tree.IsBelow(r.path, o.path) || tree.IsBelow(o.path, r.path))
}

// Mounts are the mounts of this process at one moment.
type Mounts []*mountinfo.Info

// List returns the current mounts.
func List() (Mounts, error) {
	list, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return list, nil
}

// Region returns where an open file or directory is.
func (l Mounts) Region(fd int) (Region, error) {
	real, err := os.Readlink(tree.FdPath(fd))
	if err != nil {
		return Region{}, err
	}
	var stat unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat); err != nil {
		return Region{}, fmt.Errorf("statx %s: %w", real, err)
	}
	for _, m := range l {
		if uint64(m.ID) != stat.Mnt_id {
			continue
		}
		below, err := filepath.Rel(m.Mountpoint, real)
		return Region{m.Major, m.Minor, path.Join(m.Root, below)}, err
	}
	return Region{}, fmt.Errorf("mount of %s not found", real)
}

// Below returns what is mounted below a directory. A recursive bind mount of the directory includes these regions.
func (l Mounts) Below(dir string) []Region {
	var regions []Region
	for _, m := range l {
		if m.Mountpoint != dir && tree.IsBelow(m.Mountpoint, dir) {
			regions = append(regions, Region{m.Major, m.Minor, m.Root})
		}
	}
	return regions
}
