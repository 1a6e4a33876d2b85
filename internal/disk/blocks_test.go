package disk

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestBytes(t *testing.T) {
	const blocks = 1 << 30 // more bytes than 32 bits can count
	if got := BlockBytes(&unix.Statfs_t{Bsize: 4096}, blocks); got != 1<<42 {
		t.Errorf("%d blocks of 4096 bytes are %d bytes", blocks, got)
	}
}
