package crilog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// planted is an object in the place of a log file or of its directory. A container with a volume on the log directory can create it.
var planted = []struct {
	name, cause string
	// plant replaces the log at path, whose directory exists and is empty. A file of the host is at victim.
	plant func(path, victim string) error
}{
	{"link to a file", "symbolic link", func(path, victim string) error { return os.Symlink(victim, path) }},
	{"relative link to a file", "symbolic link", func(path, _ string) error { return os.Symlink("../../victim", path) }},
	{"dangling link", "symbolic link", func(path, victim string) error { return os.Symlink(victim+"-new", path) }},
	{"hard link", "2 links", func(path, victim string) error { return os.Link(victim, path) }},
	{"FIFO", "not a regular file", func(path, _ string) error { return unix.Mkfifo(path, 0o600) }},
	{"directory", "not a regular file", func(path, _ string) error { return os.Mkdir(path, 0o700) }},
	{"link instead of the directory", "symbolic link", func(path, victim string) error {
		return replaceDir(filepath.Dir(path), filepath.Dir(victim))
	}},
	{"link instead of the pod's directory", "symbolic link", func(path, victim string) error {
		return replaceDir(filepath.Dir(filepath.Dir(path)), filepath.Dir(victim))
	}},
	{"directory that others can write", "must be writable by its owner only", func(path, _ string) error {
		return os.Chmod(filepath.Dir(path), 0o777)
	}},
}

// replaceDir replaces a directory without files by a link.
func replaceDir(dir, target string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Symlink(target, dir)
}

// plantLog returns the path of a log, and of a file of the host that must not be read or written.
func plantLog(t *testing.T) (path, victim string) {
	t.Helper()
	dir := t.TempDir()
	path, victim = filepath.Join(dir, "pod", "c", "0.log"), filepath.Join(dir, "victim")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(victim, []byte("2026-01-02T03:04:05Z stdout F secret of the host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, victim
}

// TestWriterFollowsNoLinks: whatever a container puts in the place of its log, nothing is written elsewhere, and the container is not
// blocked. The loss is reported when the log can be written again.
func TestWriterFollowsNoLinks(t *testing.T) {
	for _, test := range planted {
		t.Run(test.name, func(t *testing.T) {
			path, victim := plantLog(t)
			before := contents(t, filepath.Dir(victim))
			if err := test.plant(path, victim); err != nil {
				t.Fatal(err)
			}
			w := open(t, path, Options{})
			copyAll(w, Stdout, "* * * * * root intruder\n")
			if got := contents(t, filepath.Dir(victim)); got != before {
				t.Errorf("files of the host are\n%s\nwant\n%s", got, before)
			}
			if w.lost.lines != 1 || !strings.Contains(w.lost.cause.Error(), test.cause) {
				t.Errorf("lost %d lines (%v), want 1 line because of %q", w.lost.lines, w.lost.cause, test.cause)
			}
			for _, mended := range []string{path, filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
				if err := os.RemoveAll(mended); err != nil {
					t.Fatal(err)
				}
			}
			copyAll(w, Stdout, "mended\n")
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "1 lines") || !strings.HasSuffix(string(text), "mended\n") {
				t.Errorf("the mended log is %q (%v)", text, err)
			}
		})
	}
}

// contents returns the names and contents of the regular files in a directory.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Name() + ": " + string(text))
	}
	return b.String()
}

// TestReaderFollowsNoLinks: the same objects are not read, nor are they as a rotated file.
func TestReaderFollowsNoLinks(t *testing.T) {
	for _, test := range planted {
		if test.name == "hard link" {
			continue // a user who can make one can read the file
		}
		for _, suffix := range []string{"", ".1"} {
			t.Run(test.name+suffix, func(t *testing.T) {
				path, victim := plantLog(t)
				if err := test.plant(path+suffix, victim); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(filepath.Dir(victim), "0.log"), []byte("2026-01-02T03:04:05Z stdout F secret\n"),
					0o600); err != nil {
					t.Fatal(err)
				}
				var failed error
				for e, err := range Read(t.Context(), path, ReadOptions{}) {
					if failed = err; err == nil {
						t.Errorf("read %q", e.Text)
					}
				}
				if failed == nil || !strings.Contains(failed.Error(), test.cause) {
					t.Errorf("error %v, want %q", failed, test.cause)
				}
			})
		}
	}
}

// TestRotationFollowsNoLinks: rotation replaces links and never follows them.
func TestRotationFollowsNoLinks(t *testing.T) {
	path, victim := plantLog(t)
	before := contents(t, filepath.Dir(victim))
	w := open(t, path, Options{MaxBytes: 100, Keep: 3})
	line := strings.Repeat("x", 70) + "\n"
	for range 2 { // the second time, the file itself is a link when it is rotated
		for _, name := range []string{path, path + ".1", path + ".2"} {
			if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := os.Symlink(victim, name); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			copyAll(w, Stdout, line)
		}
	}
	if got := contents(t, filepath.Dir(victim)); got != before {
		t.Errorf("files of the host are\n%s\nwant\n%s", got, before)
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"0.log", "0.log.20260101", "0.log.20260102.gz", "1.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second call finds nothing
		if err := Remove(filepath.Join(dir, "0.log")); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "1.log" {
		t.Errorf("left: %v, %v; want 1.log", left, err)
	}
}

// TestRemoveFollowsNoLinks: what has taken the place of a log is removed, the target of a link is not.
func TestRemoveFollowsNoLinks(t *testing.T) {
	for _, test := range planted {
		t.Run(test.name, func(t *testing.T) {
			path, victim := plantLog(t)
			if err := os.WriteFile(filepath.Join(filepath.Dir(victim), "0.log"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			before := contents(t, filepath.Dir(victim))
			if err := test.plant(path, victim); err != nil {
				t.Fatal(err)
			}
			if err := Remove(path); err != nil {
				t.Error(err)
			}
			if got := contents(t, filepath.Dir(victim)); got != before {
				t.Errorf("files of the host are\n%s\nwant\n%s", got, before)
			}
			if names, err := Names(filepath.Dir(path)); err == nil && len(names) > 0 {
				t.Errorf("%v is left", names)
			}
		})
	}
}
