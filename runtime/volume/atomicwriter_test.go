package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
)

func content(pairs ...string) Files {
	f := Files{}
	for i := 0; i < len(pairs); i += 2 {
		f[pairs[i]] = File{[]byte(pairs[i+1]), 0o644}
	}
	return f
}

// visibleFiles returns the content of the files that a container sees, by path.
func visibleFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		top, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(top, path)
				found[filepath.Join(e.Name(), name)] = filetest.Read(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestWrite(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "conf")
	modes := content("a", "1", "deep/er/b", "2")
	modes["a"] = File{[]byte("1"), 0o400}
	steps := []struct {
		name    string
		content Files
		changed bool
	}{
		{"first", content("a", "1", "deep/er/b", "2"), true},
		{"unchanged", content("a", "1", "deep/er/b", "2"), false},
		{"changed mode", modes, true},
		{"changed content of the same length", content("a", "3", "deep/er/b", "2"), true},
		{"additional file in an existing directory", content("a", "3", "deep/er/b", "2", "deep/c", "4"), true},
		{"file replaces directory", content("a", "3", "deep", "5"), true},
		{"no files", content(), true},
		{"no files, unchanged", content(), false},
		{"files after none", content("a", "1"), true},
	}
	for _, step := range steps {
		changed, err := Writer{}.Write(dir, step.content)
		if err != nil || changed != step.changed {
			t.Errorf("%s: changed %v, want %v: %v", step.name, changed, step.changed, err)
		}
		want := map[string]string{}
		for name, f := range step.content {
			want[name] = string(f.Content)
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode() != f.Mode {
				t.Errorf("%s: %s: %v, %v", step.name, name, info.Mode(), err)
			}
		}
		if diff := cmp.Diff(want, visibleFiles(t, dir)); diff != "" {
			t.Errorf("%s:\n%s", step.name, diff)
		}
		hidden, _ := filepath.Glob(filepath.Join(dir, "..*"))
		if len(hidden) != 2 {
			t.Errorf("%s: unexpected files: %v", step.name, hidden)
		}
	}
	if mode := filetest.Stat(t, dir).Mode; mode != unix.S_IFDIR|0o755 {
		t.Errorf("directory: mode %o", mode)
	}
}

func TestWriteWithFSGroup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	gid := int64(os.Getgid())
	secret := Files{"deep/key": {[]byte("x"), 0o400}}
	for _, want := range []bool{true, false} {
		if changed, err := (Writer{&gid}).Write(dir, secret); err != nil || changed != want {
			t.Fatalf("changed %v, want %v: %v", changed, want, err)
		}
	}
	for path, want := range map[string]uint32{
		"": unix.S_IFDIR | unix.S_ISGID | 0o755, "..data/deep": unix.S_IFDIR | unix.S_ISGID | 0o755, "deep/key": unix.S_IFREG | 0o440,
	} {
		if s := filetest.Stat(t, filepath.Join(dir, path)); s.Mode != want || int64(s.Gid) != gid {
			t.Errorf("%q: mode %o, group %d, want %o", path, s.Mode, s.Gid, want)
		}
	}
	if changed, err := (Writer{}).Write(dir, secret); err != nil || !changed {
		t.Errorf("without fsGroup: changed %v, %v", changed, err)
	}
}

func TestWriteInvalidPaths(t *testing.T) {
	for _, name := range []string{"", ".", "/a", "a/", "../a", "a/../b", "..data", "..a", strings.Repeat("a/", 2048) + "a"} {
		dir := filepath.Join(t.TempDir(), "conf")
		_, err := Writer{}.Write(dir, content(name, "x"))
		filetest.WantError(t, err, "invalid path")
	}
	_, err := Writer{}.Write(filepath.Join(t.TempDir(), "conf"), content("a", "x", "a/b", "y"))
	filetest.WantError(t, err, "a is both a file and the directory of a/b")
	_, err = Writer{}.Write(filepath.Join(t.TempDir(), "no", "conf"), content("a", "x"))
	filetest.WantError(t, err, "no such file")
}

// The next write completes an interrupted one, and reports a change only if a reader sees one.
func TestWriteAfterCrash(t *testing.T) {
	tests := []struct {
		name    string
		crash   func(dir, stamp string) error
		changed bool
	}{
		{"before the first step", func(dir, _ string) error { return os.RemoveAll(dir) }, true},
		{"while writing the new directory", func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "..2026_01_01_00_00_00.x"), 0o700),
				os.WriteFile(filepath.Join(dir, "..2026_01_01_00_00_00.x", "a"), nil, 0o600))
		}, false},
		{"before replacing the link", func(dir, _ string) error { return os.Symlink("..gone", filepath.Join(dir, "..data_tmp")) }, false},
		{"after replacing the link", func(dir, _ string) error { return os.Remove(filepath.Join(dir, "a")) }, false},
		{"before removing old links", func(dir, _ string) error { return os.Symlink("..data/old", filepath.Join(dir, "old")) }, false},
		{"missing directory", func(dir, stamp string) error { return os.RemoveAll(filepath.Join(dir, stamp)) }, true},
		{"truncated file", func(dir, stamp string) error { return os.Truncate(filepath.Join(dir, stamp, "a"), 0) }, true},
		{"directory in place of a link", func(dir, _ string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a")), os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "conf")
			if _, err := (Writer{}).Write(dir, content("a", "1")); err != nil {
				t.Fatal(err)
			}
			stamp, err := os.Readlink(filepath.Join(dir, dataLink))
			if err != nil {
				t.Fatal(err)
			}
			if err := test.crash(dir, stamp); err != nil {
				t.Fatal(err)
			}
			changed, err := Writer{}.Write(dir, content("a", "1"))
			if err != nil || changed != test.changed {
				t.Errorf("changed %v, want %v: %v", changed, test.changed, err)
			}
			if diff := cmp.Diff(map[string]string{"a": "1"}, visibleFiles(t, dir)); diff != "" {
				t.Error(diff)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 3 {
				t.Errorf("unexpected files: %v", entries)
			}
		})
	}
}

// A reader that opens ..data sees the files of one update only.
func TestWriteIsAtomic(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	if _, err := (Writer{}).Write(dir, content("a", "0", "b", "0")); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	stop := make(chan struct{})
	var reads atomic.Int64
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := os.Lstat(filepath.Join(dir, dataLink)); err != nil {
				t.Errorf("..data is missing: %v", err)
				return
			}
			data, err := os.OpenRoot(filepath.Join(dir, dataLink))
			if err != nil { // the directory was removed before it was opened
				continue
			}
			a, errA := data.ReadFile("a")
			b, errB := data.ReadFile("b")
			_ = data.Close()
			if errA != nil || errB != nil { // the directory was removed by the next update
				continue
			}
			if reads.Add(1); string(a) != string(b) {
				t.Errorf("a reader saw %s and %s", a, b)
			}
		}
	})
	for i := 0; i < 300 || reads.Load() == 0 && i < 1e6; i++ {
		text := strconv.Itoa(i + 1)
		if changed, err := (Writer{}).Write(dir, content("a", text, "b", text)); err != nil || !changed {
			t.Errorf("update %d: %v, %v", i, changed, err)
		}
	}
	close(stop)
	group.Wait()
	if reads.Load() == 0 {
		t.Error("no update was read")
	}
}

// TestWriteHeldFile: a container that holds a lease on a file does not delay the writer.
func TestWriteHeldFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	files := Files{"key": {Content: []byte("value"), Mode: 0o644}}
	if _, err := (Writer{}).Write(dir, files); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := unix.FcntlInt(held.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	if _, err := (Writer{}).Write(dir, files); err != nil {
		t.Error(err)
	}
	have, err := os.Stat(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	if old, err := held.Stat(); err != nil || os.SameFile(have, old) {
		t.Errorf("the file was not replaced, %v", err)
	}
}
