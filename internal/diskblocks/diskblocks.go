// Package diskblocks converts counts of file system blocks to bytes, on hosts of 32 and of 64 bits.
package diskblocks

import "golang.org/x/sys/unix"

// Bytes returns the size of a number of blocks of the file system, such as those in Blocks, Bfree and Bavail.
func Bytes(fs *unix.Statfs_t, blocks uint64) int64 {
	return int64(blocks) * int64(fs.Bsize) //nolint:unconvert // the type of Bsize depends on the architecture
}
