package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/internal/config"
)

// TestSpace checks that a bundle whose images do not fit on the disk, compressed and unpacked, is refused with advice.
func TestSpace(t *testing.T) {
	real := freeSpace
	defer func() { freeSpace = real }()
	b := &Bundle{Manifest: Manifest{Files: []File{{Path: "images/0.tar", Size: 3 << 10}}, UnpackedSize: 5 << 10}}
	tx := &Transaction{Bundle: b, config: &config.Config{StateDir: "/s"}}
	for free, want := range map[int64]string{
		8 << 10: "", 8<<10 - 1: "the images need 3Ki and 5Ki unpacked, /s has 7Ki free",
		1 << 10: "the images need 3Ki and 5Ki unpacked, /s has 1Ki free",
	} {
		freeSpace = func(string) (int64, error) { return free, nil }
		err := tx.CheckHost()
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%d bytes free: %v, want %q", free, err, want)
		}
		if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Hint == "") {
			t.Errorf("%v has no hint", err)
		}
	}
}

// TestReplaceFiles checks that a config map has exactly the keys that it is to have. Other files are kept.
func TestReplaceFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"..2026_01", "mode~"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, values := range []map[string][]byte{
		{"a": []byte("1"), "b": []byte("2"), ".dockerconfigjson": []byte("{}")}, {"b": []byte("3")}, {},
	} {
		if err := replaceFiles(dir, values, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != len(values)+2 {
			t.Errorf("files %v, %v; want %d keys", entries, err, len(values))
		}
		for key, want := range values {
			if got, err := os.ReadFile(filepath.Join(dir, key)); err != nil || string(got) != string(want) {
				t.Errorf("%s: %q, %v", key, got, err)
			}
		}
	}
}
