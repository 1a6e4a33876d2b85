//go:build e2e

package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// protect sets the flag immutable or append-only. It needs CAP_LINUX_IMMUTABLE.
func protect(t *testing.T, path string, flag int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flag); err != nil {
		t.Fatalf("set flags of a file: %v", err)
	}
	t.Cleanup(func() {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestRemoveProtectedFiles checks that files and directories that chattr has made immutable or append-only are removed, also where the
// tree is so deep that directories are moved.
func TestRemoveProtectedFiles(t *testing.T) {
	const immutable, appendOnly = 0x10, 0x20
	dir := filepath.Join(t.TempDir(), "volume")
	deep := filepath.Join(dir, strings.Repeat("d/", 70))
	if err := os.MkdirAll(filepath.Join(deep, "last"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"immutable", "append", "d/in", "linked"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	protect(t, filepath.Join(dir, "immutable"), immutable)
	protect(t, filepath.Join(dir, "append"), appendOnly)
	protect(t, filepath.Join(deep, "last"), immutable)
	protect(t, filepath.Dir(filepath.Clean(deep)), appendOnly)
	protect(t, filepath.Join(dir, "d"), immutable)
	protect(t, dir, immutable)
	if err := RemoveTree(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not removed: %v", err)
	}
}
