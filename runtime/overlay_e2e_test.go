//go:build e2e

package runtime

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestOverlayWithoutAttributes tests that overlayfs does not work on a file system without extended attributes, though it can be mounted.
func TestOverlayWithoutAttributes(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("files", dir, "ramfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	reason, err := tryOverlay(dir)
	if want := "overlayfs cannot replace a directory: the file system has no extended attributes"; reason != want || err != nil {
		t.Errorf("%q, %v, want %q", reason, err, want)
	}
}
