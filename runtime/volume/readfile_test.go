package volume

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// TestReadFile checks that a container cannot make the daemon read anything but a small file of its volume.
func TestReadFile(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}, spec.Volume{Name: "unused", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "host", HostPath: &spec.HostPathVolume{Path: t.TempDir()}})
	dir := s.path(pod.UID, &pod.Spec.Volumes[0])
	outside := filepath.Join(t.TempDir(), "outside")
	filetest.Write(t, outside, "outside")
	filetest.Write(t, filepath.Join(dir, "a", "file"), "inside")
	filetest.Write(t, filepath.Join(dir, "full"), strings.Repeat("x", MaxFileBytes))
	filetest.Write(t, filepath.Join(dir, "large"), "")
	if err := errors.Join(
		os.Truncate(filepath.Join(dir, "large"), 1<<40), unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666),
		os.Chmod(filepath.Join(dir, "a", "file"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"link": "a/file", "absolute": "/a/file", "above": "../../a/file", "loop": "loop", "out": outside, "up": "../" + "../../../../../..",
		"magic": "/proc/self/fd/0", "a/back": "../a/file", "to-fifo": "fifo",
	} {
		filetest.Symlink(t, target, filepath.Join(dir, name))
	}
	for _, test := range []struct {
		volume, path, want string
		err                string
		missing            bool
	}{
		{volume: "data", path: "a/file", want: "inside"},
		{volume: "data", path: "/a//file", want: "inside"},
		{volume: "data", path: "link", want: "inside"},
		{volume: "data", path: "absolute", want: "inside"},
		{volume: "data", path: "above", want: "inside"}, // as if the volume were the root directory
		{volume: "data", path: "a/back", want: "inside"},
		{volume: "data", path: "full", want: strings.Repeat("x", MaxFileBytes)},
		{volume: "data", path: "none", err: "no such file or directory", missing: true},
		{volume: "data", path: "out", err: "no such file or directory", missing: true},
		{volume: "data", path: "up" + outside, err: "no such file or directory", missing: true},
		{volume: "data", path: "magic", err: "no such file or directory", missing: true},
		{volume: "data", path: "a/file/b", err: "not a directory"},
		{volume: "data", path: "loop", err: "too many levels of symbolic links"},
		{volume: "data", path: "fifo", err: "open fifo: not a regular file"},
		{volume: "data", path: "to-fifo", err: "open to-fifo: not a regular file"},
		{volume: "data", path: "a", err: "open a: not a regular file"},
		{volume: "data", path: "large", err: "larger than 1048576 bytes"},
		{volume: "unused", path: "a", err: "open volume: no such file or directory", missing: true},
		{volume: "host", path: "a", err: `cannot find the volume "host" referenced by FileKeyRef`},
		{volume: "none", path: "a", err: `cannot find the volume "none" referenced by FileKeyRef`},
	} {
		text, err := s.ReadFile(t.Context(), pod.UID, pod.Spec, test.volume, test.path)
		if string(text) != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err ||
			errors.Is(err, fs.ErrNotExist) != test.missing {
			t.Errorf("%s of %s: %.100q, %v, want %.100q, %q", test.path, test.volume, text, err, test.want, test.err)
		}
	}
}

// TestReadHeldFile checks that a container cannot delay the daemon by a lease on the file.
func TestReadHeldFile(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}})
	path := filepath.Join(s.path(pod.UID, &pod.Spec.Volumes[0]), "file")
	filetest.Write(t, path, "text")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	signal.Ignore(unix.SIGIO) // which the kernel sends to the holder
	defer signal.Reset(unix.SIGIO)
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	if text, err := s.ReadFile(t.Context(), pod.UID, pod.Spec, "data", "file"); !errors.Is(err, guard.ErrHeld) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		t.Fatal(err)
	}
	if text, err := s.ReadFile(t.Context(), pod.UID, pod.Spec, "data", "file"); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}
