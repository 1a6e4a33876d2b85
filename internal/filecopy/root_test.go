package filecopy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const hostSecret, inside = "swordfish-of-the-host", "content of the container"

// newRoot returns a root that contains dir/file, and the path of a file outside of it.
func newRoot(t *testing.T) (r *Root, path, outside string) {
	t.Helper()
	top := t.TempDir()
	path, outside = filepath.Join(top, "root"), filepath.Join(top, "secret")
	if err := os.MkdirAll(filepath.Join(path, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{outside: hostSecret, filepath.Join(path, "dir/file"): inside} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r = NewRoot(dir)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, path, outside
}

// content returns the content of a file, or the error.
func content(r *Root, path string) (string, error) {
	f, err := r.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := f.Read()
	if err != nil {
		return "", err
	}
	defer data.Close()
	text, err := io.ReadAll(data)
	return string(text), err
}

func TestLinksStayInTheRoot(t *testing.T) {
	r, path, outside := newRoot(t)
	for name, target := range map[string]string{
		"absolute": outside, "relative": "../secret", "far": strings.Repeat("../", 30) + outside[1:], "dir/up": "../../secret",
		"dirlink": filepath.Dir(outside), "magic": "/proc/self/root" + outside,
	} {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{name, "/" + name, name + "/secret", "dir/../" + name} {
			if text, err := content(r, p); err == nil {
				t.Errorf("%s: read %q, want an error", p, text)
			}
		}
	}
	for _, p := range []string{"../secret", "/../secret", "dir/../../secret", outside} {
		if text, err := content(r, p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %q, %v, want not found", p, text, err)
		}
	}
	if err := os.Symlink("/dir/file", filepath.Join(path, "good")); err != nil {
		t.Fatal(err)
	}
	if text, err := content(r, "dir/../good"); err != nil || text != inside {
		t.Errorf("a link inside: got %q, %v", text, err)
	}
}

func TestLocate(t *testing.T) {
	r, path, outside := newRoot(t)
	for name, target := range map[string]string{"a": "/dir/b", "dir/b": "c", "out": outside, "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ path, name, located string }{
		{"/a", "c", "/dir/c"},
		{"a", "c", "/dir/c"},
		{"dir/file", "file", "dir/file"},
		{"/dir/..", ".", "/dir/.."},
		{"/", ".", "/"},
		{"/new", "new", "/new"},
	} {
		dir, name, located, err := r.Locate(test.path)
		if err != nil || name != test.name || located != test.located {
			t.Errorf("%s: got %q, %q, %v, want %q, %q", test.path, name, located, err, test.name, test.located)
		}
		if err == nil {
			_ = dir.Close()
		}
	}
	if _, _, _, err := r.Locate("loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a loop: got %v", err)
	}
	if _, _, _, err := r.Locate("out"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link out: got %v, want not found", err)
	}
}

// TestOtherFiles checks that FIFOs, devices and files of the kernel are not read. A read of the FIFO would block the test.
func TestOtherFiles(t *testing.T) {
	r, path, _ := newRoot(t)
	if err := unix.Mkfifo(filepath.Join(path, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := content(r, "fifo"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("FIFO: got %v", err)
	}
	host, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	all := NewRoot(host)
	defer all.Close()
	if _, err := content(all, "/dev/null"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("device: got %v", err)
	}
	for _, p := range []string{"/proc/version", "/proc", "/sys/kernel"} {
		if _, err := content(all, p); !errors.Is(err, ErrKernel) {
			t.Errorf("%s: got %v", p, err)
		}
	}
}

// TestExclude checks that nothing of an excluded file system is opened, and that other missing files are reported as missing.
func TestExclude(t *testing.T) {
	host, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	all := NewRoot(host)
	defer all.Close()
	var stat unix.Stat_t
	if err := unix.Stat("/dev", &stat); err != nil {
		t.Fatal(err)
	}
	all.Exclude(stat.Dev)
	for _, p := range []string{"/dev", "/dev/null", "/dev/none", "/dev/none/none", "/dev/none/", "/tmp/../dev/none", "dev/none"} {
		if f, err := all.Open(p); !errors.Is(err, ErrCovered) {
			t.Errorf("%s: got %v, %v", p, f, err)
		}
	}
	dir, err := all.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if f, err := dir.Lookup("dev"); !errors.Is(err, ErrCovered) {
		t.Errorf("an entry: got %v, %v", f, err)
	}
	for _, p := range []string{"/none", "/none/none", "/tmp/none/../none", "/dev/../none"} {
		if f, err := all.Open(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, %v", p, f, err)
		}
	}
}

func TestLookup(t *testing.T) {
	r, path, outside := newRoot(t)
	if err := os.Symlink(outside, filepath.Join(path, "dir/link")); err != nil {
		t.Fatal(err)
	}
	dir, err := r.Open("dir")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, name := range []string{"..", ".", "", "a/b", "/etc", "a\x00"} {
		if _, err := dir.Lookup(name); err == nil {
			t.Errorf("name %q: no error", name)
		}
	}
	link, err := dir.Lookup("link")
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if target, err := link.Link(); !link.IsLink() || err != nil || target != outside {
		t.Errorf("got link %v to %q, %v", link.IsLink(), target, err)
	}
}

// TestSwappedNames exchanges a file, and a directory in the path, with links to the host all the time. Every read must give the content of
// the file inside, or an error.
func TestSwappedNames(t *testing.T) {
	r, path, outside := newRoot(t)
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(path, "dir/other")), os.Symlink(filepath.Dir(outside), filepath.Join(path, "otherdir")),
		os.WriteFile(filepath.Join(path, "dir/secret"), []byte(inside), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swap := func(a, b string) {
		for {
			select {
			case <-stop:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(path, a), unix.AT_FDCWD, filepath.Join(path, b),
					unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}
	swaps.Go(func() { swap("dir", "otherdir") })
	read := 0
	for range 20000 {
		for _, p := range []string{"dir/secret", "dir/../dir/secret", "dir/other"} {
			text, err := content(r, p)
			if err == nil && text != inside {
				t.Fatalf("%s: read %q", p, text)
			}
			if err == nil {
				read++
			}
		}
	}
	close(stop)
	swaps.Wait()
	if read == 0 {
		t.Error("no read succeeded, the test proves nothing")
	}
}

// FuzzOpen opens any path in a root with links of all kinds, and checks that the file is inside.
func FuzzOpen(f *testing.F) {
	for _, seed := range []string{
		"a", "../secret", "up/../secret", "abs", "magic/x", "//dir//.//../up/file", "dir/./up/up", "\x00", strings.Repeat("a/", 3000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, root, outside := newRoot(t)
		for name, target := range map[string]string{"up": "..", "abs": "/", "dir/up": "../..", "out": outside, "magic": "/proc/self/cwd"} {
			if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, open := range []func(string) (*File, error){r.Open, r.OpenLink, func(p string) (*File, error) {
			dir, _, _, err := r.Locate(p)
			return dir, err
		}} {
			file, err := open(path)
			if err != nil {
				continue
			}
			real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(file.Fd())))
			if err == nil && real != root && !strings.HasPrefix(real, root+"/") {
				t.Errorf("path %q leads to %s", path, real)
			}
			_ = file.Close()
		}
	})
}
