package imagegc

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/diskblocks"
)

// Disk is the usage of a file system in percent, rounded up as by df.
type Disk struct {
	Space  int
	Inodes int // 0: the file system has no fixed number of inodes
	// Used and Size are in bytes. Size is what can be used, without the space that is reserved for root.
	Used, Size int64
}

// Stat returns the usage of the file system of a directory.
func Stat(dir string) (Disk, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return Disk{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	used := diskblocks.Bytes(&stat, stat.Blocks-stat.Bfree)
	size := used + diskblocks.Bytes(&stat, stat.Bavail)
	return Disk{Space: percent(used, size), Inodes: percent(int64(stat.Files-stat.Ffree), int64(stat.Files)), Used: used, Size: size}, nil
}

func percent(used, size int64) int {
	if size <= 0 {
		return 0
	}
	return int((float64(used)*100 + float64(size) - 1) / float64(size))
}

// above reports whether a threshold is exceeded. As for the kubelet, 100 is never.
func (d Disk) above(threshold int) bool {
	return threshold < 100 && max(d.Space, d.Inodes) >= threshold
}

func (d Disk) String() string {
	text := fmt.Sprintf("%d%% of the space", d.Space)
	if d.Inodes > 0 {
		text += fmt.Sprintf(" and %d%% of the inodes", d.Inodes)
	}
	return text
}
