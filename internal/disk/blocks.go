package disk

import "golang.org/x/sys/unix"

// BlockBytes returns the size of a number of blocks of the file system, such as those in Blocks, Bfree and Bavail.
func BlockBytes(fs *unix.Statfs_t, blocks uint64) int64 {
	return int64(blocks) * int64(fs.Bsize) //nolint:unconvert // the type of Bsize depends on the architecture
}
