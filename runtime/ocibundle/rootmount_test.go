package ocibundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// rootBundle returns a bundle with a root file system at a path.
func rootBundle(t *testing.T, root string) (bundle string) {
	t.Helper()
	bundle = filepath.Join(t.TempDir(), "id")
	if err := os.MkdirAll(filepath.Join(bundle, "rootfs"), 0o711); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"root": {"path": %q}, "linux": {"gidMappings": [{"containerID": 0, "hostID": %d, "size": 1}]}}`, root,
		os.Getgid())
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestPlace(t *testing.T) {
	roots := t.TempDir()
	root := filepath.Join(roots, "id", "rootfs")
	bundle := rootBundle(t, root)
	for range 2 { // the second one finds what a killed shim has left
		if err := placeRoot(bundle); err != nil {
			t.Fatal(err)
		}
	}
	if target, err := filepath.EvalSymlinks(filepath.Join(bundle, "rootfs")); err != nil || target != root {
		t.Errorf("the bundle leads to %q, %v, want %q", target, err, root)
	}
	info, err := os.Stat(filepath.Dir(root))
	if err != nil || info.Mode().Perm() != 0o710 {
		t.Errorf("got %v, %v, want mode 0710", info, err)
	}
	for range 2 {
		if err := RemoveRoot(bundle); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(filepath.Dir(root)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not removed: %v", err)
	}
}

// TestOtherRoots: a root file system in the bundle, and a directory of a user, are left as they are.
func TestOtherRoots(t *testing.T) {
	other := filepath.Join(t.TempDir(), "rootfs")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"rootfs", other} {
		bundle := rootBundle(t, root)
		if err := errors.Join(placeRoot(bundle), RemoveRoot(bundle)); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{filepath.Join(bundle, "rootfs"), other} {
			if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
				t.Errorf("root %s: got %v, %v, want directory %s as before", root, info, err, dir)
			}
		}
	}
}

// TestSweep checks that only mount points without a bundle are removed, and no files.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kept/rootfs", "gone/rootfs", "half", "filled/rootfs/file"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := SweepRoots(dir, func(id string) bool { return id == "kept" }); err == nil {
		t.Error("no error for a directory with a file")
	}
	for name, want := range map[string]bool{"kept/rootfs": true, "gone": false, "half": false, "filled/rootfs/file": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: exists: %t, want %t", name, err == nil, want)
		}
	}
	if err := SweepRoots(filepath.Join(dir, "none"), nil); err != nil {
		t.Error(err)
	}
}
