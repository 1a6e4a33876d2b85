package images

import (
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/disk"
)

// StatDisk returns the usage of the file system of a directory.
func StatDisk(dir string) (Disk, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return Disk{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	used := disk.BlockBytes(&stat, stat.Blocks-stat.Bfree)
	size := used + disk.BlockBytes(&stat, stat.Bavail)
	inodes := percent(int64(stat.Files-stat.Ffree), int64(stat.Files))
	return Disk{Space: percent(used, size), Inodes: inodes, Used: used, Size: size}, nil
}

func percent(used, size int64) int {
	if size <= 0 {
		return 0
	}
	return int((float64(used)*100 + float64(size) - 1) / float64(size))
}
