package filewatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// fake is a file system whose files have a version, and a notifier that can refuse directories.
type fake struct {
	mu      sync.Mutex
	files   map[string]int
	dir     string // the directory of the files, below /
	armed   string // the directory that was added last
	full    bool   // the notifier refuses directories
	failure error  // of a scan, which lacks /tree then
}

// set changes a file; version 0 removes it.
func (f *fake) set(path string, version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files[path] = version; version == 0 {
		delete(f.files, path)
	}
}

func (f *fake) take(*Set) (*scan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := newScan()
	now.dirs["/"+f.dir] = true
	for path, version := range f.files {
		if f.failure == nil || !strings.HasPrefix(path, "/tree/") {
			now.files[path] = stamp{size: int64(version)}
		}
	}
	if f.failure != nil {
		now.failed = []string{"/tree"}
	}
	return now, f.failure
}

func (f *fake) Add(dir string) error {
	f.armed = dir
	if f.full {
		return errors.New("no space left on device")
	}
	return nil
}

func (f *fake) Remove(string) error { return nil }

func (f *fake) Close() error { return nil }

// next calls Next, and returns its result with the time that it took.
func next(t *testing.T, w *Watcher) string {
	t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	changed, err := w.Next(ctx)
	if err != nil {
		return fmt.Sprintf("%v after %v", err, time.Since(begun))
	}
	return fmt.Sprintf("%s after %v", strings.Join(changed, " "), time.Since(begun))
}

func TestNext(t *testing.T) {
	for _, row := range []struct {
		name string
		act  func(f *fake, w *Watcher)
		full bool
		want string
	}{
		{"one change", func(f *fake, w *Watcher) {
			time.Sleep(time.Second)
			f.set("/a", 2)
			w.changed()
		}, false, "/a after 1.3s"},
		{"many changes are one", func(f *fake, w *Watcher) {
			for i := range 10 {
				time.Sleep(200 * time.Millisecond)
				f.set(fmt.Sprintf("/%d", i%2), i+10)
				w.changed()
			}
		}, false, "/0 /1 after 2.3s"},
		{"changes without end are reported meanwhile", func(f *fake, w *Watcher) {
			for i := range 100 {
				time.Sleep(100 * time.Millisecond)
				f.set("/a", i+10)
				w.changed()
			}
		}, false, "/a after 5.1s"},
		{"a temporary file is none", func(f *fake, w *Watcher) {
			f.set("/tmp", 1)
			w.changed()
			time.Sleep(100 * time.Millisecond)
			f.set("/tmp", 0)
			w.changed()
			time.Sleep(time.Minute)
			f.set("/b", 0)
			w.changed()
		}, false, "/b after 1m0.4s"},
		{
			"a notification without a change is none", func(_ *fake, w *Watcher) { w.changed() }, false,
			"context deadline exceeded after 1h0m0s",
		},
		{"a file system without notifications", func(f *fake, _ *Watcher) {
			time.Sleep(5 * time.Second)
			f.set("/a", 2)
		}, false, "/a after 10.3s"},
		{"no notification, because the limit is reached", func(f *fake, _ *Watcher) {
			time.Sleep(1500 * time.Millisecond)
			f.set("/a", 2)
		}, true, "/a after 2.3s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{files: map[string]int{"/a": 1, "/b": 1}, full: row.full}
				w := newWatcher(f.take, f)
				time.Sleep(time.Second)
				must(t, w.Watch(Set{}))
				var acting sync.WaitGroup
				acting.Go(func() { row.act(f, w) })
				if got := next(t, w); got != row.want {
					t.Errorf("got %q, want %q", got, row.want)
				}
				acting.Wait()
			})
		})
	}
}

// TestFailedScan: an error of a scan ends one call. The next ones report the changes of what was scanned, and at last those of the rest.
func TestFailedScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{files: map[string]int{"/a": 1, "/tree/b": 1, "/tree/c": 1}}
		w := newWatcher(f.take, f)
		must(t, w.Watch(Set{}))
		f.failure = errors.New("too many files")
		w.changed()
		if got := next(t, w); got != "too many files after 300ms" {
			t.Errorf("got %q", got)
		}
		f.dir = "proc"
		if err := w.Watch(Set{Files: []string{"/other"}}); err == nil || len(w.set.Files) > 0 || f.armed != "/" {
			t.Errorf("a set that cannot be scanned is watched: %v, directory %s", err, f.armed)
		}
		f.dir = ""
		f.set("/a", 2)
		f.set("/tree/b", 2)
		w.changed()
		if got := next(t, w); got != "/a after 300ms" {
			t.Errorf("got %q", got)
		}
		f.failure = errors.New("even more files")
		w.changed()
		if got := next(t, w); got != "even more files after 300ms" {
			t.Errorf("got %q", got)
		}
		f.failure = nil
		if got := next(t, w); got != "/tree/b after 10.3s" {
			t.Errorf("got %q", got)
		}
		f.failure = errors.New("even more files")
		w.changed()
		if got := next(t, w); got != "even more files after 300ms" {
			t.Errorf("again: got %q", got)
		}
	})
}

// TestWatchBetween: what changes while a caller handles the changes before is reported next, also if the set is replaced meanwhile. Files
// that are added to the set are no change.
func TestWatchBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{files: map[string]int{"/a": 1, "/b": 1}}
		w := newWatcher(f.take, f)
		set := Set{Files: []string{"/a", "/b"}}
		must(t, w.Watch(set))
		f.set("/a", 2)
		w.changed()
		if got := next(t, w); got != "/a after 300ms" {
			t.Errorf("got %q", got)
		}
		f.set("/a", 3)
		f.set("/b", 0)
		f.set("/c", 1)
		set.Files = append(set.Files, "/c")
		w.take = func(s *Set) (*scan, error) { // /c is old
			now, err := f.take(s)
			now.changed["/c"] = time.Now().Add(-time.Hour)
			return now, err
		}
		must(t, w.Watch(set))
		if got := next(t, w); got != "/a /b after 300ms" {
			t.Errorf("got %q", got)
		}
	})
}

// take1 returns the files of a set that exist, relative to a directory.
func take1(t *testing.T, dir string, s Set) string {
	t.Helper()
	now, err := take(&s)
	must(t, err)
	var list []string
	for path := range now.files {
		relative, err := filepath.Rel(dir, path)
		must(t, err)
		list = append(list, relative)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestTrees(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/deep/e.pyc", "node_modules/x.py", ".git/config.py", "src/.c.py.swp", "src/c.py~",
		"src/.#c.py", "keep/ignored/f.py", "keep/g.py",
	} {
		write(t, filepath.Join(dir, name), "")
	}
	must(t, os.Symlink(filepath.Join(dir, "a.py"), filepath.Join(dir, "src/link.py")))
	for _, row := range []struct {
		name string
		tree Tree
		want string
	}{
		{
			"everything",
			Tree{Path: dir},
			"a.py b.txt keep/g.py keep/ignored/f.py node_modules/x.py src/c.py src/deep/d.py src/deep/e.pyc",
		},
		{"ignored", Tree{Path: dir, Ignore: []string{"node_modules/", "**/*.pyc", "keep"}}, "a.py b.txt src/c.py src/deep/d.py"},
		{"an exception", Tree{Path: dir, Ignore: []string{"*", "!keep/g.py"}}, "keep/g.py"},
		{"included", Tree{Path: dir, Include: []string{"src/**/*.py"}}, "src/c.py src/deep/d.py"},
		{"a directory of pod files", Tree{Path: dir, Flat: true, Include: []string{"*.py"}}, "a.py"},
		{"a file", Tree{Path: filepath.Join(dir, "b.txt")}, "b.txt"},
		{"nothing", Tree{Path: filepath.Join(dir, "none")}, ""},
	} {
		if got := take1(t, dir, Set{Trees: []Tree{row.tree}}); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		for _, name := range []string{"a.py", "b.txt", "src/c.py", "src/deep/d.py", "keep/g.py", "src/c.py~", ".git/config.py"} {
			if got, want := row.tree.Has(filepath.Join(dir, name)), slices.Contains(strings.Fields(row.want), name); got != want {
				t.Errorf("%s: has %s: %v", row.name, name, got)
			}
		}
		if row.tree.Has("/") || row.tree.Has(dir+"-other/a.py") {
			t.Errorf("%s: has files outside", row.name)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(filepath.Join(dir, "src"), link))
	if got := take1(t, link, Set{Trees: []Tree{{Path: link, Include: []string{"c.py", "deep/*.py"}}}}); got != "c.py deep/d.py" {
		t.Errorf("a link to a directory: %q", got)
	}
	if got := take1(t, dir, Set{Files: []string{dir + "/src/link.py", dir + "/none", dir + "/src"}}); got != "src/link.py" {
		t.Errorf("files: %q", got)
	}
	for _, bad := range []Tree{{Path: dir, Include: []string{"["}}, {Path: dir, Ignore: []string{"["}}} {
		if _, err := take(&Set{Trees: []Tree{bad}}); err == nil || !strings.Contains(err.Error(), "watch "+dir+": ") {
			t.Errorf("patterns %v: %v", bad, err)
		}
	}
}

func TestTooManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range maxFiles + 2 {
		must(t, os.Link(first(t, dir), fmt.Sprintf("%s/%d", dir, i)))
	}
	other := t.TempDir()
	write(t, filepath.Join(other, "pods/web.toml"), "")
	write(t, filepath.Join(other, "web.env"), "")
	now, err := take(&Set{
		Files: []string{filepath.Join(other, "web.env")},
		Trees: []Tree{{Path: dir}, {Path: filepath.Join(other, "pods"), Flat: true}},
	})
	if len(now.files) != 2 || !slices.Equal(now.failed, []string{dir}) {
		t.Errorf("%d files are watched, want the others; failed: %q", len(now.files), now.failed)
	}
	if err == nil || err.Error() != fmt.Sprintf("watch %s: more than %d files", dir, maxFiles) {
		t.Errorf("error %v", err)
	}
}

// first returns a file of a directory, which it creates.
func first(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "first")
	if _, err := os.Stat(path); err != nil {
		write(t, path, "")
	}
	return path
}

// TestFileSystem follows files of a real file system through what editors and tools do.
func TestFileSystem(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("pods/web.toml"), "1")
	write(t, in("src/main.py"), "1")
	write(t, in("target/real.env"), "1")
	must(t, os.Symlink(in("target/real.env"), in("link.env")))
	write(t, in("v1/app.toml"), "1")
	write(t, in("v2/app.toml"), "2")
	must(t, os.Symlink("v1", in("current")))
	w, err := New()
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	must(t, w.Watch(Set{
		Files: []string{in("link.env"), in("later/new.env")},
		Trees: []Tree{{Path: in("pods"), Flat: true, Include: []string{"*.toml"}}, {Path: in("src")}, {Path: in("current"), Flat: true}},
	}))
	w.pending = map[string]bool{} // the files are new
	for _, step := range []struct {
		name string
		act  func()
		want string
	}{
		{"write", func() { write(t, in("pods/web.toml"), "22") }, "pods/web.toml"},
		{"replace by rename, as vim and sed -i do", func() {
			write(t, in("pods/.web.toml.swp"), "333")
			write(t, in("pods/4913"), "")
			must(t, os.Remove(in("pods/4913")))
			must(t, os.Rename(in("pods/web.toml"), in("pods/web.toml~")))
			write(t, in("pods/web.toml"), "333")
		}, "pods/web.toml"},
		{"a new file", func() { write(t, in("pods/db.toml"), "") }, "pods/db.toml"},
		{"a new directory with a file", func() { write(t, in("src/new/deep/a.py"), "") }, "src/new/deep/a.py"},
		{"a file in the new directory", func() { write(t, in("src/new/deep/b.py"), "") }, "src/new/deep/b.py"},
		{"the target of a link", func() { write(t, in("target/real.env"), "4444") }, "link.env"},
		{"a file in a directory that did not exist", func() { write(t, in("later/new.env"), "") }, "later/new.env"},
		{"removal of a directory", func() { must(t, os.RemoveAll(in("src/new"))) }, "src/new/deep/a.py src/new/deep/b.py"},
		{"a directory that was replaced", func() {
			must(t, os.Rename(in("src"), in("old")))
			write(t, in("src/main.py"), "55555")
		}, "src/main.py"},
		{"a file after that", func() { write(t, in("src/again.py"), "") }, "src/again.py"},
		{"a file in the target of a linked directory", func() { write(t, in("v1/new.toml"), "") }, "current/new.toml"},
		{"a link to a directory that was replaced", func() {
			must(t, os.Symlink("v2", in("next")))
			must(t, os.Rename(in("next"), in("current")))
		}, "current/app.toml current/new.toml"},
		{"a file in its new target", func() { write(t, in("v2/app.toml"), "22") }, "current/app.toml"},
	} {
		step.act()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		changed, err := w.Next(ctx)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for i, path := range changed {
			changed[i], _ = filepath.Rel(dir, path)
		}
		if got := strings.Join(changed, " "); got != step.want {
			t.Errorf("%s: changes %q, want %q", step.name, got, step.want)
		}
	}
}
