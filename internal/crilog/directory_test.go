package crilog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMagicLinks: links of /proc, which lead to any file without a path, are refused as other links are.
func TestMagicLinks(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	proc := fmt.Sprintf("/proc/%d", os.Getpid())
	for _, path := range []string{
		fmt.Sprintf("%s/fd/%d", proc, f.Fd()), fmt.Sprintf("%s/fd/%d/new", proc, f.Fd()), proc + "/cwd", proc + "/root" + dir,
		"/proc/self/fd",
	} {
		for _, create := range []bool{false, true} {
			d, err := walk(path, create)
			if err == nil {
				d.close()
			}
			if !errors.Is(err, errLink) {
				t.Errorf("open %s (create %v): %v, want %v", path, create, err, errLink)
			}
		}
	}
	if names, err := f.Readdirnames(-1); len(names) > 0 || err != nil {
		t.Errorf("behind the link were created %v, %v", names, err)
	}
}

// TestParentDirectory: ".." is resolved in the text of a path, so that it cannot leave the target of a link.
func TestParentDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pod/c", "host/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../host/deep", filepath.Join(dir, "pod/link")); err != nil {
		t.Fatal(err)
	}
	d, err := walk(dir+"/pod/link/../c", false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if got, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", d.fd)); got != filepath.Join(dir, "pod/c") || err != nil {
		t.Errorf("opened %s, %v", got, err)
	}
	if _, err := walk("pod/c", false); err == nil || !strings.Contains(err.Error(), "must be absolute") {
		t.Errorf("relative path: %v", err)
	}
	if _, err := OpenFeed(FeedOptions{Dir: t.TempDir(), Path: "0.log"}); err == nil || !strings.Contains(err.Error(), "must be absolute") {
		t.Errorf("relative path of a log: %v", err)
	}
}

// TestSwappedDirectory: while a directory of the path is exchanged with a link repeatedly, a log is never opened or created behind the
// link.
func TestSwappedDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pod", "host"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	pod, link := filepath.Join(dir, "pod"), filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "host"), link); err != nil {
		t.Fatal(err)
	}
	done, swapped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				swapped <- nil
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, pod, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
					swapped <- err
					return
				}
			}
		}
	}()
	opened, refused := 0, 0
	for n := 0; n < 100_000 && min(opened, refused) < 100; n++ {
		d, err := walk(filepath.Join(pod, fmt.Sprintf("c%d", n%10)), true)
		switch {
		case err == nil:
			opened++
			d.close()
		case errors.Is(err, errLink):
			refused++
		default:
			t.Errorf("open: %v, want %v", err, errLink)
		}
	}
	close(done)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "host")); len(entries) > 0 || err != nil {
		t.Errorf("behind the link were created %v, %v", entries, err)
	}
	if opened == 0 {
		t.Errorf("opened %d times, refused %d times", opened, refused)
	}
}
