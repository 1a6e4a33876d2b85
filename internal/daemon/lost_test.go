package daemon

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLostDirs: the daemon notices that a file was removed or replaced, and nothing else.
func TestLostDirs(t *testing.T) {
	dir := t.TempDir()
	kept, removed, replaced := filepath.Join(dir, "kept"), filepath.Join(dir, "removed"), filepath.Join(dir, "replaced")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{kept, removed, replaced} {
		write(path, "1")
	}
	never := filepath.Join(dir, "never")
	was := map[string]identities{}
	for _, path := range []string{kept, removed, replaced, never} {
		was[path] = identify(path)
	}
	write(kept, "2")
	write(never, "1")
	write(replaced+".new", "1")
	if err := os.Rename(replaced+".new", replaced); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{kept: "", never: "", removed: removed, replaced: replaced} {
		if got := was[path].lost(); got != want {
			t.Errorf("%s: lost %q, want %q", path, got, want)
		}
	}
}
