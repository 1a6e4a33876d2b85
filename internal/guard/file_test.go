package guard

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestOpenFile: nothing that a container can put in the place of a file, or do with a file, makes OpenFile wait.
func TestOpenFile(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, path string) error
		want    error // nil means any
		opens   bool
	}{
		{"file", func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("text"), 0o600) }, nil, true},
		{"missing", func(*testing.T, string) error { return nil }, os.ErrNotExist, false},
		{"FIFO", func(_ *testing.T, path string) error { return unix.Mkfifo(path, 0o600) }, nil, false},
		{"directory", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) }, nil, false},
		{"link", func(_ *testing.T, path string) error { return os.Symlink("/etc/passwd", path) }, nil, false},
		{"write lease", holdLease, ErrHeld, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := test.prepare(t, path); err != nil {
				t.Fatal(err)
			}
			for _, flags := range []int{os.O_RDONLY, os.O_RDWR} {
				f, err := OpenFile(path, flags)
				if (err == nil) != test.opens || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("flags %#x: %v, want %v", flags, err, test.want)
				}
				if err == nil {
					f.Close()
				}
			}
		})
	}
}

// holdLease creates a file and takes a write lease on it until the end of the test.
func holdLease(t *testing.T, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	t.Cleanup(func() { f.Close() })
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err
}

// TestUseFile: a function that does not return delays its caller by 5 seconds, the next caller of the same path too, and no other.
func TestUseFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var users FileUsers
		stuck := make(chan struct{})
		for range 2 {
			start := time.Now()
			if _, err := UseFile(t.Context(), &users, "stuck", func() (int, error) { <-stuck; return 0, nil }); !errors.Is(err, ErrHeld) {
				t.Errorf("stuck: %v, want %v", err, ErrHeld)
			}
			if took := time.Since(start); took != 5*time.Second {
				t.Errorf("the caller was delayed by %v, want 5s", took)
			}
		}
		if n, err := UseFile(t.Context(), &users, "other", func() (int, error) { return 1, nil }); n != 1 || err != nil {
			t.Errorf("other: %d, %v", n, err)
		}
		if _, err := UseFile(t.Context(), &users, "other", func() (int, error) { return 0, unix.EAGAIN }); !errors.Is(err, ErrHeld) {
			t.Errorf("mandatory lock: %v, want %v", err, ErrHeld)
		}
		close(stuck)
	})
}
