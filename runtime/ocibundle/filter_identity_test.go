package ocibundle

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLibraries expects another identity when libseccomp is added, replaced or removed, in a directory of libraries or one level below.
func TestLibraries(t *testing.T) {
	dir := t.TempDir()
	identity := func(dir string) string {
		t.Helper()
		sum := sha256.New()
		if err := addLibraries(sum, dir); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sum.Sum(nil))
	}
	none := identity(dir)
	if identity(filepath.Join(dir, "missing")) != none {
		t.Error("a directory that does not exist has an identity")
	}
	seen := map[string]string{none: "no library"}
	replace := func(what, path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		id := identity(dir)
		if before, known := seen[id]; known {
			t.Errorf("%s: same identity as %s", what, before)
		}
		seen[id] = what
	}
	replace("library", filepath.Join(dir, library), "1")
	replace("library below", filepath.Join(dir, "x86_64-linux-gnu", library), "1")
	replace("replaced library", filepath.Join(dir, library), "2")
	replace("replaced library below", filepath.Join(dir, "x86_64-linux-gnu", library), "2")
	same := identity(dir)
	if err := os.WriteFile(filepath.Join(dir, "x86_64-linux-gnu", "libc.so.6"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if identity(dir) != same {
		t.Error("another library changes the identity")
	}
}
