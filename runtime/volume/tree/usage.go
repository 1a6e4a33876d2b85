package tree

import (
	"context"

	"golang.org/x/sys/unix"
)

// blockBytes is the unit of st_blocks on all file systems.
const blockBytes = 512

// DiskUsage returns the disk usage of a directory tree in bytes. Hard links are counted once. The error is ErrTooDeep for
// more than MaxDepth levels.
func DiskUsage(ctx context.Context, dir string) (int64, error) {
	var total int64
	seen := map[uint64]bool{} // inodes with hard links; walk stays on one file system
	err := walk(ctx, dir, func(_ int, stat *unix.Stat_t) error {
		if stat.Nlink > 1 && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			if seen[stat.Ino] {
				return nil
			}
			seen[stat.Ino] = true
		}
		total += stat.Blocks * blockBytes
		return nil
	})
	return total, err
}
