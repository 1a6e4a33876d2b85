package userns

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
	bundles := filepath.Join(run, "engine", "bundles")
	if err := os.MkdirAll(bundles, 0o700); err != nil {
		t.Fatal(err)
	}
	mode := func(dir string) os.FileMode {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if err := openDir(bundles, run, true); err != nil {
		t.Errorf("dry run: %v", err)
	}
	if got := mode(bundles); got != 0o700 {
		t.Errorf("dry run: mode %#o, want 0700", got)
	}
	if err := openDir(filepath.Join(bundles, "none"), run, false); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{bundles, filepath.Dir(bundles), run} {
		if got := mode(dir); got != 0o711 {
			t.Errorf("%s: mode %#o, want 0711", dir, got)
		}
	}
	if err := os.Chmod(base, 0o700); err != nil {
		t.Fatal(err)
	}
	closed, is := errors.AsType[closedError](openDir(bundles, run, false))
	if !is || closed.dir != base || mode(base) != 0o700 {
		t.Errorf("closed parent: %v, mode %#o; want an error and mode 0700", closed, mode(base))
	}
}
