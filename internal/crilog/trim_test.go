package crilog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrimMatching(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	line := strings.Repeat("x", 99) + "\n"
	write("web_u/app/2.log", "old\n")
	write("web_u/app/10.log", strings.Repeat(line, 10_000)+"last\n")
	write("web_u/app/10.log.1", "older\n")
	write("web_u/app/10.log.trimmed", "left by a crash")
	write("web_u/side/0.log", "second\n")
	write("web_u/side/0.log.1", "first\n")
	write("web_u/file", "not a directory")
	write("other_v/app/0.log", "kept\n")
	write("other_v/app/1.log", "kept\n")
	write("outside", "outside")
	for _, link := range []string{"web_u/link/0.log", "web_w/app"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, "other_v/app"), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // repeated after a crash
		if err := TrimMatching(dir, func(name string) bool { return strings.HasPrefix(name, "web_") }); err != nil {
			t.Fatal(err)
		}
	}
	names := func(path string) string {
		entries, err := os.ReadDir(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return strings.Join(list, " ")
	}
	for path, want := range map[string]string{
		"web_u/app": "10.log", "web_u/side": "0.log", "web_u/link": "", "other_v/app": "0.log 1.log",
	} {
		if got := names(path); got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "web_u/app/10.log"))
	if err != nil || len(text) > trimmedSize || len(text) < trimmedSize-200 || !strings.HasPrefix(string(text), line) ||
		!strings.HasSuffix(string(text), "x\nlast\n") {
		t.Errorf("trimmed log has %d bytes, %v", len(text), err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "web_u/side/0.log")); string(text) != "first\nsecond\n" {
		t.Errorf("short log: %q, %v", text, err)
	}
	if err := TrimMatching(filepath.Join(dir, "missing"), func(string) bool { return true }); err != nil {
		t.Error(err)
	}
}
