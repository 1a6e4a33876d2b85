package atomicwriter

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

// seen is what a container reads in a volume: the content by path, without the names that begin with two dots.
func seen(t *testing.T, dir string) map[string]string {
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
		{"the same", content("a", "1", "deep/er/b", "2"), false},
		{"another mode", modes, true},
		{"another content of the same length", content("a", "3", "deep/er/b", "2"), true},
		{"a file more, in a folder that is there", content("a", "3", "deep/er/b", "2", "deep/c", "4"), true},
		{"a folder less, a file instead", content("a", "3", "deep", "5"), true},
		{"nothing", content(), true},
		{"still nothing", content(), false},
		{"again", content("a", "1"), true},
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
		if diff := cmp.Diff(want, seen(t, dir)); diff != "" {
			t.Errorf("%s:\n%s", step.name, diff)
		}
		hidden, _ := filepath.Glob(filepath.Join(dir, "..*"))
		if len(hidden) != 2 {
			t.Errorf("%s: left: %v", step.name, hidden)
		}
	}
	if mode := filetest.Stat(t, dir).Mode; mode != unix.S_IFDIR|0o755 {
		t.Errorf("the folder has mode %o", mode)
	}
}

func TestWriteForGroup(t *testing.T) {
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
		t.Errorf("without the group: changed %v, %v", changed, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, name := range []string{"", ".", "/a", "a/", "../a", "a/../b", "..data", "..a", strings.Repeat("a/", 2048) + "a"} {
		dir := filepath.Join(t.TempDir(), "conf")
		_, err := Writer{}.Write(dir, content(name, "x"))
		filetest.WantError(t, err, "invalid path")
	}
	_, err := Writer{}.Write(filepath.Join(t.TempDir(), "conf"), content("a", "x", "a/b", "y"))
	filetest.WantError(t, err, "a is a file, and a folder for a/b")
	_, err = Writer{}.Write(filepath.Join(t.TempDir(), "no", "conf"), content("a", "x"))
	filetest.WantError(t, err, "no such file")
}

// However an earlier write was cut short, the next one finishes it, and says so only if a reader sees a change.
func TestWriteAfterCrash(t *testing.T) {
	tests := []struct {
		name    string
		crash   func(dir, stamp string) error
		changed bool
	}{
		{"before anything", func(dir, _ string) error { return os.RemoveAll(dir) }, true},
		{"in the new folder", func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "..2026_01_01_00_00_00.x"), 0o700),
				os.WriteFile(filepath.Join(dir, "..2026_01_01_00_00_00.x", "a"), nil, 0o600))
		}, false},
		{"before the switch", func(dir, _ string) error { return os.Symlink("..gone", filepath.Join(dir, "..data_tmp")) }, false},
		{"after the switch", func(dir, _ string) error { return os.Remove(filepath.Join(dir, "a")) }, false},
		{"before old links go", func(dir, _ string) error { return os.Symlink("..data/old", filepath.Join(dir, "old")) }, false},
		{"with a lost folder", func(dir, stamp string) error { return os.RemoveAll(filepath.Join(dir, stamp)) }, true},
		{"with a damaged file", func(dir, stamp string) error { return os.Truncate(filepath.Join(dir, stamp, "a"), 0) }, true},
		{"with a folder in the way", func(dir, _ string) error {
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
			if diff := cmp.Diff(map[string]string{"a": "1"}, seen(t, dir)); diff != "" {
				t.Error(diff)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 3 {
				t.Errorf("left: %v", entries)
			}
		})
	}
}

// A reader that goes through ..data sees the files of one update, never of two.
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
				t.Errorf("..data is gone: %v", err)
				return
			}
			data, err := os.OpenRoot(filepath.Join(dir, dataLink))
			if err != nil { // where the link led to was removed before it was opened
				continue
			}
			a, errA := data.ReadFile("a")
			b, errB := data.ReadFile("b")
			_ = data.Close()
			if errA != nil || errB != nil { // the update is over, and this one was removed
				continue
			}
			if reads.Add(1); string(a) != string(b) {
				t.Errorf("a reader saw %s beside %s", a, b)
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
		t.Error("the reader never saw a whole update")
	}
}
