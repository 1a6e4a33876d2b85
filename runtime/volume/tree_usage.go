package volume

import (
	"context"

	"golang.org/x/sys/unix"
)

// blockBytes is the unit of st_blocks on all file systems.
const blockBytes = 512

// FileBytes is what a file, a directory or a link counts as at least, in a limit. It is a block of common file systems. An empty file has
// no block, but an inode, and those of a disk are limited too.
const FileBytes = 4096

// TreeUsage is the usage of a directory tree. Hard links are counted once.
type TreeUsage struct {
	Bytes   int64 // allocated
	Files   int64 // with directories and links
	Counted int64 // Bytes, but at least [FileBytes] for each file
}

// DiskUsage returns the disk usage of a directory tree. The error is ErrTooDeep for more than maxDepth levels.
func DiskUsage(ctx context.Context, dir string) (TreeUsage, error) {
	var total TreeUsage
	seen := map[uint64]bool{} // inodes with hard links; walk stays on one file system
	err := walk(ctx, dir, func(_ int, stat *unix.Stat_t) error {
		if stat.Nlink > 1 && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			if seen[stat.Ino] {
				return nil
			}
			seen[stat.Ino] = true
		}
		bytes := stat.Blocks * blockBytes
		total.Files++
		total.Bytes += bytes
		total.Counted += max(bytes, FileBytes)
		return nil
	})
	return total, err
}
