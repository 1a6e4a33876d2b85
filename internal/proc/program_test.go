package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestExecutes compares the program of this process with files.
func TestExecutes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(text)
	changed[len(changed)-1]++
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text []byte
		want bool
	}{"copy": {text, true}, "changed": {changed, false}, "longer": {append(changed, 0), false}, "empty": {nil, false}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, test.text, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := Executes(os.Getpid(), path); got != test.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
	if _, err := Executes(os.Getpid(), filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
