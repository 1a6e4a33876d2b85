package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
)

func TestRemove(t *testing.T) {
	top := t.TempDir()
	keep := filepath.Join(top, "keep", "file")
	filetest.Write(t, keep, "kept")
	tree := filepath.Join(top, "tree")
	for i := range 1500 { // more than one batch of names
		filetest.Write(t, filepath.Join(tree, "many", strconv.Itoa(i)), "")
	}
	filetest.DeepTree(t, filepath.Join(tree, "deep"), 400)
	filetest.Write(t, filepath.Join(tree, ".deep-1", "file"), "in the way")
	filetest.Symlink(t, filepath.Dir(keep), filepath.Join(tree, "link"))
	if err := os.Mkdir(filepath.Join(tree, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	filetest.Symlink(t, filepath.Dir(keep), link)
	fewFiles(t, 128)
	for _, path := range []string{tree, link, tree, filepath.Join(top, "no", "parent")} {
		if err := RemoveTree(t.Context(), path); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if filetest.Read(t, keep) != "kept" {
		t.Error("the target of a link was changed")
	}
	filetest.Write(t, filepath.Join(tree, "file"), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := RemoveTree(ctx, tree); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
}

// fewFiles limits the number of open files until the end of the test.
func fewFiles(t *testing.T, number uint64) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: number, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
}

// An existing entry with the new name is not replaced.
func TestMoveUp(t *testing.T) {
	top := t.TempDir()
	filetest.Write(t, filepath.Join(top, ".deep-1"), "kept")
	filetest.Write(t, filepath.Join(top, "a", "b", "file"), "")
	r := remover{top: filetest.OpenDirectory(t, top)}
	a := filetest.OpenDirectory(t, filepath.Join(top, "a"))
	for range 2 { // the second time it no longer exists, which is no error
		if err := r.moveUp(a, "b"); err != nil {
			t.Fatal(err)
		}
	}
	if filetest.Read(t, filepath.Join(top, ".deep-1")) != "kept" || filetest.Read(t, filepath.Join(top, ".deep-2", "file")) != "" {
		t.Error("unexpected name after moveUp")
	}
}

// While directories are exchanged for links, nothing outside is removed.
func TestRemoveRace(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	filetest.Write(t, filepath.Join(outside, "deep", "file"), "kept")
	for range 100 {
		tree := filepath.Join(top, "tree")
		for i := range 5 {
			filetest.Write(t, filepath.Join(tree, "a", "deep", strconv.Itoa(i)), "")
		}
		filetest.Symlink(t, outside, filepath.Join(tree, "b"))
		var group sync.WaitGroup
		group.Go(func() {
			for unix.Renameat2(unix.AT_FDCWD, filepath.Join(tree, "a"), unix.AT_FDCWD, filepath.Join(tree, "b"),
				unix.RENAME_EXCHANGE) == nil {
				continue // until one is removed
			}
		})
		for range 100 { // an error is a detected race
			if RemoveTree(t.Context(), tree) == nil {
				break
			}
		}
		group.Wait()
		if err := RemoveTree(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
	}
	if filetest.Read(t, filepath.Join(outside, "deep", "file")) != "kept" {
		t.Error("the target of a link was changed")
	}
}

func TestSetOwnership(t *testing.T) {
	defer unix.Umask(unix.Umask(0o022))
	dir := filetest.Mkdir(t, filepath.Join(t.TempDir(), "claim"))
	outside := filepath.Join(t.TempDir(), "outside")
	filetest.Write(t, outside, "")
	filetest.Write(t, filepath.Join(dir, "deep", "file"), "")
	filetest.Write(t, filepath.Join(dir, "closed"), "")
	if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	filetest.Symlink(t, outside, filepath.Join(dir, "link"))
	gid := uint32(os.Getgid())
	if err := setOwnership(t.Context(), dir, gid, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint32{
		".": unix.S_IFDIR | unix.S_ISGID | 0o775, "deep": unix.S_IFDIR | unix.S_ISGID | 0o775,
		"deep/file": unix.S_IFREG | 0o664, "closed": unix.S_IFREG | 0o660, "link": unix.S_IFLNK | 0o777,
	} {
		if s := filetest.Stat(t, filepath.Join(dir, name)); s.Mode != want || s.Gid != gid {
			t.Errorf("%s: mode %o, group %d, want %o", name, s.Mode, s.Gid, want)
		}
	}
	if mode := filetest.Stat(t, outside).Mode; mode != unix.S_IFREG|0o644 {
		t.Errorf("target of a link: mode %o", mode)
	}
	// With onRootMismatch, the tree is skipped if the root is right.
	if err := os.Chmod(filepath.Join(dir, "deep", "file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		skip bool
		root os.FileMode
		want uint32
	}{
		{true, os.ModeSetgid | 0o770, 0o600},
		{true, os.ModeSetgid | 0o777, 0o600},
		{true, 0o770, 0o660},
		{false, os.ModeSetgid | 0o770, 0o660},
	} {
		file := filepath.Join(dir, "deep", "file")
		if err := errors.Join(os.Chmod(dir, test.root), os.Chmod(file, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := setOwnership(t.Context(), dir, gid, test.skip); err != nil {
			t.Fatal(err)
		}
		if mode := filetest.Stat(t, file).Mode &^ unix.S_IFMT; mode != test.want {
			t.Errorf("OnRootMismatch %v, root %o: the file has mode %o, want %o", test.skip, test.root, mode, test.want)
		}
	}
	if err := setOwnership(t.Context(), filepath.Join(dir, "none"), gid, true); err == nil {
		t.Error("no error for a missing directory")
	}
}
