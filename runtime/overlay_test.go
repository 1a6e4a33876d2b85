package runtime

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSelectSnapshotter tests that an engine keeps the snapshotter that has layers. Whether overlayfs works here is not known.
func TestSelectSnapshotter(t *testing.T) {
	for _, has := range []string{overlay, native} {
		dir := t.TempDir()
		layers := func(name string) string { return filepath.Join(dir, name) }
		if err := os.MkdirAll(filepath.Join(layers(has), "1"), 0o700); err != nil {
			t.Fatal(err)
		}
		name, reason, err := selectSnapshotter(dir, layers)
		if err != nil || name != has || (reason != "") != (has == native) {
			t.Errorf("with layers of %s: %s, %q, %v", has, name, reason, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("left in the directory: %v, %v", entries, err)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if name, _, err := selectSnapshotter(dir, func(string) string { return file }); err == nil {
		t.Errorf("layers that cannot be listed: %s", name)
	}
}
