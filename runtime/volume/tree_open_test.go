package volume

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
)

func TestOpenOrCreate(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	top := t.TempDir()
	outside := filetest.Mkdir(t, filepath.Join(top, "outside"))
	filetest.Write(t, filepath.Join(outside, "secret"), "")
	volume := filetest.Mkdir(t, filepath.Join(top, "volume"))
	if err := os.Chmod(volume, os.ModeSetgid|0o770); err != nil {
		t.Fatal(err)
	}
	filetest.Mkdir(t, filepath.Join(volume, "dir", "deep"))
	filetest.Write(t, filepath.Join(volume, "dir", "file"), "")
	filetest.Symlink(t, "dir/deep", filepath.Join(volume, "inside"))
	filetest.Symlink(t, "../volume/dir", filepath.Join(volume, "around"))
	filetest.Symlink(t, "../outside", filepath.Join(volume, "relative"))
	filetest.Symlink(t, outside, filepath.Join(volume, "absolute"))
	filetest.Symlink(t, "nothing", filepath.Join(volume, "dangling"))
	filetest.Symlink(t, "/proc/self/root", filepath.Join(volume, "magic"))
	tests := []struct {
		sub, err string
		leads    string // path in the volume
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
		{"dangling", `create directory "dangling": not a directory`, ""},
		{"dangling/new", `create directory "dangling": not a directory`, ""},
		{"magic/etc", "subpath", ""},
		{"dir/file/new", "not a directory", ""},
	}
	root := filetest.OpenDirectory(t, volume)
	for _, test := range tests {
		fd, err := openOrCreate(root, test.sub)
		filetest.WantError(t, err, test.err)
		if err != nil {
			continue
		}
		var got unix.Stat_t
		if err := unix.Fstat(fd, &got); err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		if want := filetest.Stat(t, filepath.Join(volume, test.leads)); got.Ino != want.Ino {
			t.Errorf("%s: opened another directory", test.sub)
		}
	}
	for _, created := range []string{"new", "dir/deep/more", "dir/deep/more/and/more"} {
		if mode := filetest.Stat(t, filepath.Join(volume, created)).Mode; mode != unix.S_IFDIR|unix.S_ISGID|0o770 {
			t.Errorf("%s was created with mode %o", created, mode)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("created outside: %v", entries)
	}
}

// While a directory is exchanged for a link out of the volume, nothing outside is opened or created.
func TestOpenOrCreateRace(t *testing.T) {
	top := t.TempDir()
	outside := filetest.Mkdir(t, filepath.Join(top, "outside", "deep"))
	volume := filetest.Mkdir(t, filepath.Join(top, "volume"))
	filetest.Mkdir(t, filepath.Join(volume, "a", "deep"))
	filetest.Symlink(t, filepath.Dir(outside), filepath.Join(volume, "b"))
	root := filetest.OpenDirectory(t, volume)
	forbidden := filetest.Stat(t, outside).Ino
	var group sync.WaitGroup
	stop := make(chan struct{})
	filetest.Swap(t, &group, stop, filepath.Join(volume, "a"), filepath.Join(volume, "b"))
	opened, refused := 0, 0
	for i := range 4000 {
		sub := "a/deep"
		if i%2 == 1 {
			sub = filepath.Join("a/deep", "new", string(rune('a'+i%26)))
		}
		fd, err := openOrCreate(root, sub)
		if err != nil {
			refused++
			continue
		}
		opened++
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err != nil || s.Ino == forbidden {
			t.Errorf("opened a directory outside: %v", err)
		}
		_ = unix.Close(fd)
	}
	close(stop)
	group.Wait()
	t.Logf("opened %d times, refused %d times", opened, refused)
	if entries, err := os.ReadDir(outside); len(entries) > 0 || err != nil {
		t.Errorf("created outside: %v, %v", entries, err)
	}
}

// Errors leave no descriptor open.
func TestOpenErrorsLeakNoDescriptors(t *testing.T) {
	volume := t.TempDir()
	filetest.Symlink(t, "nothing", filepath.Join(volume, "dangling"))
	filetest.Write(t, filepath.Join(volume, "file"), "")
	root := filetest.OpenDirectory(t, volume)
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
			if fd, err := openOrCreate(root, sub); err == nil {
				_ = unix.Close(fd)
				t.Errorf("%s was opened", sub)
			}
		}
	}
	if after := count(); after > before+10 { // other goroutines open and close descriptors
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if _, err := openBelow(root, "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
