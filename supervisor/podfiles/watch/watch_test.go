package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
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
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// list returns a listing as text: the names with the contents that were read.
func list(t *testing.T, d *Dir) string {
	t.Helper()
	l, err := d.List()
	must(t, err)
	var files []string
	for _, f := range l.Files {
		text := f.Name
		switch {
		case f.Err != nil:
			text += " (" + f.Err.Error() + ")"
		case f.Text != nil:
			text += " " + string(f.Text)
		}
		files = append(files, text)
	}
	return strings.Join(files, ", ")
}

func TestIsPodFile(t *testing.T) {
	for name, want := range map[string]bool{
		"web.toml": true, "web.yaml": true, "web.yml": true, "web.json": true, "a b.toml": true,
		"web.toml~": false, ".web.toml": false, ".web.toml.swp": false, "4913": false, "web.toml.bak": false, "#web.toml#": false,
		".#web.toml": false,
		"web.TOML":   false, "..data": false, ".podstead-tmp-web.toml-1": false, "web": false, "toml": false,
	} {
		if got := IsPodFile(name); got != want {
			t.Errorf("IsPodFile(%q) = %v", name, got)
		}
	}
}

func TestList(t *testing.T) {
	path := t.TempDir()
	write(t, path+"/a.toml", "A")
	write(t, path+"/empty.toml", "")
	must(t, os.Mkdir(path+"/dir.toml", 0o700))
	must(t, syscall.Mkfifo(path+"/fifo.toml", 0o600))
	must(t, os.Symlink("nowhere", path+"/link.toml"))
	d := NewDir(path)
	want := fmt.Sprintf("a.toml A, empty.toml , fifo.toml (read %s/fifo.toml: not a regular file), link.toml (read %s/link.toml: no such "+
		"file or directory)",
		path, path)
	if got := list(t, d); got != want {
		t.Errorf("listing %q, want %q", got, want)
	}
	if _, err := NewDir(path + "/a.toml").List(); err == nil {
		t.Error("a file was listed as a directory")
	}
	if _, err := NewDir(path + "/none").List(); !os.IsNotExist(err) {
		t.Errorf("a missing directory: %v", err)
	}
}

// TestListReadsChangesOnly: a file is read again if it has changed, or may have changed within one tick of the clock.
func TestListReadsChangesOnly(t *testing.T) {
	path := t.TempDir()
	write(t, path+"/a.toml", "A")
	d := NewDir(path)
	for range 2 {
		if got := list(t, d); got != "a.toml A" {
			t.Errorf("listing %q right after a change", got)
		}
	}
	d.now = func() time.Time { return time.Now().Add(racy) }
	list(t, d)
	if got := list(t, d); got != "a.toml" {
		t.Errorf("listing %q later", got)
	}
	d.Forget("a.toml")
	if got := list(t, d); got != "a.toml A" {
		t.Errorf("listing %q of a forgotten file", got)
	}
	write(t, path+"/b.toml", "B")
	must(t, os.Rename(path+"/b.toml", path+"/a.toml"))
	if got := list(t, d); got != "a.toml B" {
		t.Errorf("listing %q after a replacement", got)
	}
	target := filepath.Join(t.TempDir(), "target")
	write(t, target, "C")
	must(t, os.Remove(path+"/a.toml"))
	must(t, os.Symlink(target, path+"/a.toml"))
	list(t, d)
	write(t, target, "D")
	if got := list(t, d); got != "a.toml D" {
		t.Errorf("listing %q after a change of the target of a link", got)
	}
}

// TestListOfSwappedLink: the files of a listing are those of one directory, also if the link to it is swapped meanwhile.
func TestListOfSwappedLink(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"1", "2"} {
		must(t, os.Mkdir(filepath.Join(base, dir), 0o700))
		for i := range 20 {
			write(t, filepath.Join(base, dir, fmt.Sprintf("%02d.toml", i)), dir)
		}
	}
	link := filepath.Join(base, "pods.d")
	must(t, os.Symlink("1", link))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			_ = os.Remove(link + ".new")
			if err := os.Symlink(fmt.Sprint(i%2+1), link+".new"); err != nil {
				done <- err
				return
			}
			if err := os.Rename(link+".new", link); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 200 {
		l, err := NewDir(link).List()
		must(t, err)
		for _, f := range l.Files {
			if string(f.Text) != string(l.Files[0].Text) {
				t.Fatalf("a listing has files of both directories: %q and %q", l.Files[0].Text, f.Text)
			}
		}
	}
	cancel()
	must(t, <-done)
}

func TestListLimits(t *testing.T) {
	path := t.TempDir()
	for i := range MaxFiles + 2 {
		write(t, fmt.Sprintf("%s/%05d.toml", path, i), "")
	}
	l, err := NewDir(path).List()
	must(t, err)
	if len(l.Files) != MaxFiles || !slices.Equal(l.Omitted, []string{"01024.toml", "01025.toml"}) {
		t.Errorf("%d files, omitted %v", len(l.Files), l.Omitted)
	}
}

// notifications runs a notifier.
func notifications(t *testing.T, path string) *Notifier {
	t.Helper()
	n, err := NewNotifier(path)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		n.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		must(t, n.Close())
	})
	return n
}

// expect waits for a notification.
func expect(t *testing.T, n *Notifier, what string) {
	t.Helper()
	select {
	case <-n.Changed():
	case <-time.After(time.Minute):
		t.Fatalf("no notification after %s", what)
	}
}

// TestNotifier follows a directory through everything that can happen to its path.
func TestNotifier(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "etc", "podstead", "pods.d")
	n := notifications(t, path)
	for _, step := range []struct {
		name string
		act  func() error
	}{
		{"creating the first directory of the path", func() error { return os.Mkdir(filepath.Join(base, "etc"), 0o700) }},
		{"creating the second", func() error { return os.Mkdir(filepath.Dir(path), 0o700) }},
		{"creating the directory", func() error { return os.Mkdir(path, 0o700) }},
		{"creating a file", func() error { return os.WriteFile(path+"/a.toml", []byte("A"), 0o600) }},
		{"writing to a file", func() error { return os.WriteFile(path+"/a.toml", []byte("B"), 0o600) }},
		{"renaming a file", func() error { return os.Rename(path+"/a.toml", path+"/b.toml") }},
		{"removing a file", func() error { return os.Remove(path + "/b.toml") }},
		{"moving the directory", func() error { return os.Rename(path, path+".old") }},
		{"replacing it by a link", func() error { return os.Symlink("pods.d.old", path) }},
		{"creating a file through the link", func() error { return os.WriteFile(path+"/c.toml", nil, 0o600) }},
		{"swapping the link", func() error {
			if err := os.Mkdir(path+".new", 0o700); err != nil {
				return err
			}
			if err := os.Symlink("pods.d.new", path+".link"); err != nil {
				return err
			}
			return os.Rename(path+".link", path)
		}},
		{"creating a file through the new link", func() error { return os.WriteFile(path+"/d.toml", nil, 0o600) }},
		{"deleting everything", func() error { return os.RemoveAll(filepath.Join(base, "etc")) }},
		{"creating it again", func() error { return os.MkdirAll(path, 0o700) }},
		{"creating a file in the new directory", func() error { return os.WriteFile(path+"/e.toml", nil, 0o600) }},
	} {
		must(t, n.Arm())
		for len(n.Changed()) > 0 {
			<-n.Changed()
		}
		must(t, step.act())
		expect(t, n, step.name)
	}
}

// TestRemovedFiles: the files that are removed one by one are known, those of a directory that was moved are not.
func TestRemovedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.d")
	must(t, os.Mkdir(path, 0o700))
	for _, name := range []string{"a", "b", "c"} {
		write(t, path+"/"+name+".toml", "")
	}
	n := notifications(t, path)
	must(t, n.Arm())
	must(t, os.Remove(path+"/a.toml"))
	must(t, os.Rename(path+"/b.toml", path+"/b.off"))
	removed := map[string]bool{}
	for !removed["a.toml"] || !removed["b.toml"] {
		expect(t, n, "removing files")
		for name := range n.Removed() {
			removed[name] = true
		}
	}
	must(t, os.Rename(path, path+".old"))
	expect(t, n, "moving the directory")
	must(t, n.Arm())
	if removed = n.Removed(); removed["c.toml"] {
		t.Error("a file of a moved directory counts as removed")
	}
}
