package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
)

func TestSubPathOf(t *testing.T) {
	vars := map[string]string{"A": "x", "UP": "../..", "ABS": "/etc", "EMPTY": "", "B": "y"}
	tests := []struct{ sub, expr, want, err string }{
		{"", "", "", ""},
		{"a//b/./c", "", "a/b/c", ""},
		{"$(A)", "", "$(A)", ""}, // only the expression is expanded
		{"/a", "", "", "error SubPath `/a` must not be an absolute path"},
		{"a/../b", "", "", "unable to provision SubPath `a/../b`: must not contain '..'"},
		{"a/..b", "", "a/..b", ""},
		{"", "$(A)/$(B)", "x/y", ""},
		{"", "$$(A)-$(A)$", "$(A)-x$", ""},
		{"", "$(EMPTY)/$(NONE)/$(A)/$(NONE)", "", "missing value for EMPTY, NONE"},
		{"", "a/$(UP)", "", "must not contain '..'"},
		{"", "$(ABS)", "", "must not be an absolute path"},
		{"", "$(A", "$(A", ""},
		{"", "$()", "", "missing value for "},
	}
	for _, test := range tests {
		got, err := subPathOf(&spec.VolumeMount{SubPath: test.sub, SubPathExpr: test.expr}, vars)
		if got != test.want {
			t.Errorf("%q %q: %q, want %q", test.sub, test.expr, got, test.want)
		}
		wantError(t, err, test.err)
	}
}

// What expand finds missing is what oci.Expand would leave as it is: with every variable set, no reference is left.
func TestExpandAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expression := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"$", "(", ")", "A", "B", "/", "$$", "$(A)", "$(B)"})).Draw(t, "parts"), "")
		vars := map[string]string{"A": "1", "B": "2"}
		got, err := expand(expression, vars)
		if err == nil {
			if want := oci.Expand(expression, vars); got != want {
				t.Fatalf("%q: %q, want %q", expression, got, want)
			}
			return
		}
		// Each name that is missing makes a difference once it is set.
		for name := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "missing value for "), ", ") {
			before := oci.Expand(expression, vars)
			vars[name] = "\x01"
			if oci.Expand(expression, vars) == before {
				t.Fatalf("%q: %q is not missing", expression, name)
			}
		}
	})
}

// openDirectory opens a folder as the root of a volume.
func openDirectory(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func TestOpenOrMake(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	top := t.TempDir()
	outside := mkdir(t, filepath.Join(top, "outside"))
	write(t, filepath.Join(outside, "secret"), "")
	volume := mkdir(t, filepath.Join(top, "volume"))
	if err := os.Chmod(volume, os.ModeSetgid|0o770); err != nil {
		t.Fatal(err)
	}
	mkdir(t, filepath.Join(volume, "dir", "deep"))
	write(t, filepath.Join(volume, "dir", "file"), "")
	symlink(t, "dir/deep", filepath.Join(volume, "inside"))
	symlink(t, "../volume/dir", filepath.Join(volume, "around"))
	symlink(t, "../outside", filepath.Join(volume, "relative"))
	symlink(t, outside, filepath.Join(volume, "absolute"))
	symlink(t, "nothing", filepath.Join(volume, "dangling"))
	symlink(t, "/proc/self/root", filepath.Join(volume, "magic"))
	tests := []struct {
		sub, err string
		leads    string // where in the volume
	}{
		{"dir/deep", "", "dir/deep"},
		{"dir/file", "", "dir/file"},
		{"inside", "", "dir/deep"},
		{"new", "", "new"},
		{"inside/more/and/more", "", "dir/deep/more/and/more"},
		{"around", "not within volume path", ""},
		{"relative", "not within volume path", ""},
		{"relative/secret", "not within volume path", ""},
		{"relative/new", "not within volume path", ""},
		{"absolute", "not within volume path", ""},
		{"absolute/new", "not within volume path", ""},
		{"dangling", `make folder "dangling": not a directory`, ""},
		{"dangling/new", `make folder "dangling": not a directory`, ""},
		{"magic/etc", "subpath", ""},
		{"dir/file/new", "not a directory", ""},
	}
	root := openDirectory(t, volume)
	for _, test := range tests {
		fd, err := openOrMake(root, test.sub)
		wantError(t, err, test.err)
		if err != nil {
			continue
		}
		var got unix.Stat_t
		if err := unix.Fstat(fd, &got); err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		if want := statOf(t, filepath.Join(volume, test.leads)); got.Ino != want.Ino {
			t.Errorf("%s leads elsewhere", test.sub)
		}
	}
	for _, made := range []string{"new", "dir/deep/more", "dir/deep/more/and/more"} {
		if mode := statOf(t, filepath.Join(volume, made)).Mode; mode != unix.S_IFDIR|unix.S_ISGID|0o770 {
			t.Errorf("%s was made with mode %o", made, mode)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("made outside: %v", entries)
	}
}

// swap exchanges two entries until stop is closed.
func swap(t *testing.T, group *sync.WaitGroup, stop <-chan struct{}, a, b string) {
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				t.Errorf("swap: %v", err)
				return
			}
		}
	})
}

// While a folder is being swapped against a link that leads out, nothing outside is ever opened or made.
func TestOpenOrMakeRace(t *testing.T) {
	top := t.TempDir()
	outside := mkdir(t, filepath.Join(top, "outside", "deep"))
	volume := mkdir(t, filepath.Join(top, "volume"))
	mkdir(t, filepath.Join(volume, "a", "deep"))
	symlink(t, filepath.Dir(outside), filepath.Join(volume, "b"))
	root := openDirectory(t, volume)
	forbidden := statOf(t, outside).Ino
	var group sync.WaitGroup
	stop := make(chan struct{})
	swap(t, &group, stop, filepath.Join(volume, "a"), filepath.Join(volume, "b"))
	opened, refused := 0, 0
	for i := range 4000 {
		sub := "a/deep"
		if i%2 == 1 {
			sub = filepath.Join("a/deep", "new", string(rune('a'+i%26)))
		}
		fd, err := openOrMake(root, sub)
		if err != nil {
			refused++
			continue
		}
		opened++
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err != nil || s.Ino == forbidden {
			t.Errorf("opened the folder outside: %v", err)
		}
		_ = unix.Close(fd)
	}
	close(stop)
	group.Wait()
	t.Logf("opened %d times, refused %d times", opened, refused)
	if entries, err := os.ReadDir(outside); len(entries) > 0 || err != nil {
		t.Errorf("made outside: %v, %v", entries, err)
	}
}

// An error leaves no descriptor open.
func TestOpenLeaksNothing(t *testing.T) {
	volume := t.TempDir()
	symlink(t, "nothing", filepath.Join(volume, "dangling"))
	write(t, filepath.Join(volume, "file"), "")
	root := openDirectory(t, volume)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := count()
	for range 20 {
		for _, sub := range []string{"dangling/a", "file/a", "dangling"} {
			if fd, err := openOrMake(root, sub); err == nil {
				_ = unix.Close(fd)
				t.Errorf("%s was opened", sub)
			}
		}
	}
	if after := count(); after > before+10 { // others of this process come and go
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if _, err := openBelow(root, "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
