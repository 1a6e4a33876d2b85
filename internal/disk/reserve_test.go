package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// blocks returns how many bytes the disk has allocated for a file.
func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// TestReserve: an operation that fails because the disk is full is repeated with the space of the reserve, which is allocated again.
func TestReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reserve")
	r, err := NewReserve(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if blocks(t, path) < 1<<20 {
		t.Skip("the file system has no preallocation")
	}
	for _, full := range []error{
		unix.ENOSPC, fmt.Errorf("write: %w", unix.EDQUOT), errors.New("task failed: write /x: no space left on device: unknown"),
	} {
		calls, free := 0, false
		err := r.Do(func() error {
			calls++
			free = blocks(t, path) == 0
			if free {
				return nil
			}
			return full
		})
		if err != nil || calls != 2 || !free || blocks(t, path) < 1<<20 {
			t.Errorf("%v: error %v after %d calls, space free %v, %d bytes reserved afterwards", full, err, calls, free, blocks(t, path))
		}
	}
	calls := 0
	if err := r.Do(func() error { calls++; return unix.EIO }); !errors.Is(err, unix.EIO) || calls != 1 {
		t.Errorf("error %v after %d calls, want EIO after one", err, calls)
	}
	if err := r.Do(func() error { return unix.ENOSPC }); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want that of the repetition", err)
	}
	if err := (*Reserve)(nil).Do(func() error { return unix.ENOSPC }); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v without a reserve", err)
	}
}

// TestConcurrent: the space stays free until the last operation that needs it returns.
func TestConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reserve")
	r, err := NewReserve(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			first := true
			err := r.Do(func() error {
				if first {
					first = false
					return unix.ENOSPC
				}
				if got := blocks(t, path); got != 0 {
					return fmt.Errorf("%d bytes are allocated", got)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestLostFile: without the file, or with one that cannot be used, operations fail as they would without a reserve. The file is created
// again.
func TestLostFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := NewReserve(filepath.Join(dir, "reserve"), 1<<20); err == nil {
		t.Error("no error for a missing directory")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := NewReserve(filepath.Join(dir, "reserve"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Do(func() error { return unix.ENOSPC }); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v", err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "reserve")); err != nil {
		t.Error(err)
	}
}

// TestSmallDisk needs root: it allocates what there is on a full disk, and the rest when there is space.
func TestSmallDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=768k"); err != nil {
		t.Skip("mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := filepath.Join(dir, "reserve")
	r, err := NewReserve(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if got := blocks(t, path); got < 512<<10 {
		t.Errorf("%d bytes reserved on a disk of 768 KiB", got)
	}
	if err := unix.Mount("small", dir, "tmpfs", unix.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(func() error { return nil }); err != nil || blocks(t, path) < 1<<20 {
		t.Errorf("error %v, %d bytes reserved on a disk with space", err, blocks(t, path))
	}
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = ballast.Write(make([]byte, 4096))
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	write := func() error { return os.WriteFile(filepath.Join(dir, "state"), make([]byte, 100<<10), 0o600) }
	if err := write(); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("error %v, want a full disk", err)
	}
	for range 3 {
		if err := r.Do(write); err != nil {
			t.Error(err)
		}
	}
}
