package imagegc

import (
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/daemon/images"
	"github.com/podstead/podstead/internal/disk"
)

// Stat returns the usage of the file system of a directory.
func Stat(dir string) (images.Disk, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return images.Disk{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	used := disk.BlockBytes(&stat, stat.Blocks-stat.Bfree)
	size := used + disk.BlockBytes(&stat, stat.Bavail)
	inodes := percent(int64(stat.Files-stat.Ffree), int64(stat.Files))
	return images.Disk{Space: percent(used, size), Inodes: inodes, Used: used, Size: size}, nil
}

func percent(used, size int64) int {
	if size <= 0 {
		return 0
	}
	return int((float64(used)*100 + float64(size) - 1) / float64(size))
}
