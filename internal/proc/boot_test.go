package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestBootID(t *testing.T) {
	first, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	second, err := BootID()
	if err != nil || first != second || len(first) != 36 {
		t.Errorf("read %q, then %q, %v; want the same UUID twice", first, second, err)
	}
}

func TestReadBootID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "boot_id")
	if _, err := readBootID(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v, want %v", err, fs.ErrNotExist)
	}
	for text, want := range map[string]string{"a-b\n": "a-b", "a-b": "a-b", "\n": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readBootID(path); got != want || (err != nil) != (want == "") {
			t.Errorf("file %q: got %q, error %v; want %q", text, got, err, want)
		}
	}
}
