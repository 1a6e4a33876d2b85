package tree

import (
	"context"

	"golang.org/x/sys/unix"
)

// blockBytes is the unit of a file's blocks, whatever its file system's is.
const blockBytes = 512

// DiskUsage is what a tree takes on disk, in bytes.
func DiskUsage(ctx context.Context, dir string) (int64, error) {
	var total int64
	seen := map[uint64]bool{} // files with several names; walk stays on one file system
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
