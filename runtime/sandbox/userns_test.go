package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/record"
)

func TestOpenDir(t *testing.T) {
	base := t.TempDir()
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(base), 0o755); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(base, "run")
	roots := filepath.Join(run, "rootfs")
	if err := os.MkdirAll(roots, 0o700); err != nil {
		t.Fatal(err)
	}
	mode := func(dir string) os.FileMode {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if err := openDir(roots, run, true); err != nil {
		t.Errorf("dry run: %v", err)
	}
	if got := mode(roots); got != 0o700 {
		t.Errorf("dry run: mode %#o, want 0700", got)
	}
	if err := openDir(filepath.Join(roots, "none"), run, false); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{roots, run} {
		if got := mode(dir); got != 0o711 {
			t.Errorf("%s: mode %#o, want 0711", dir, got)
		}
	}
	if err := os.Chmod(base, 0o700); err != nil {
		t.Fatal(err)
	}
	closed, is := errors.AsType[closedDirError](openDir(roots, run, false))
	if !is || closed.dir != base || mode(base) != 0o700 {
		t.Errorf("closed parent: %v, mode %#o; want an error and mode 0700", closed, mode(base))
	}
}

// TestEngineStaysClosed checks that a pod with a user namespace does not open the directory of the container engine, and that the root file
// systems are at a path without symbolic links.
func TestEngineStaysClosed(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for dir := base; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dirs := record.Dirs{State: base, Run: filepath.Join(base, "link")}
	for _, err := range []error{
		os.Mkdir(filepath.Join(base, "run"), 0o700), os.Symlink("run", dirs.Run), os.Mkdir(dirs.EngineRun(), 0o700),
		os.Mkdir(dirs.Roots(), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	u := NewUsers(dirs, true, 0)
	if err := u.openDirs(false); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]os.FileMode{dirs.EngineRun(): 0o700, dirs.Roots(): 0o711} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %#o", dir, info, err, want)
		}
	}
	for first, want := range map[uint32]string{0: "rootfs", 65536: filepath.Join(base, "run", "rootfs", "id", "rootfs")} {
		s := &specs.Spec{Root: &specs.Root{Path: "rootfs"}}
		if err := u.PlaceRoot(s, "id", namespace.IDRange{First: first}); err != nil || s.Root.Path != want {
			t.Errorf("range from %d: path %q, %v, want %q", first, s.Root.Path, err, want)
		}
	}
}
