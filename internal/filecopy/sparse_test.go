package filecopy

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// sparseFile creates a file of a size with a few bytes at offsets.
func sparseFile(t *testing.T, path string, size int64, offsets ...int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range offsets {
		if _, err := f.WriteAt([]byte("data"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks
}

// TestHoles: holes of files stay holes in the stream and in the copy, for the extractor and for tar(1).
func TestHoles(t *testing.T) {
	from, to, other := t.TempDir(), t.TempDir(), t.TempDir()
	const size = 8 << 20
	files := map[string][]int64{"empty": nil, "start": {0}, "middle": {2 << 20, 3 << 20}, "end": {size - 4}, "d/käse": {1 << 20}}
	for name, offsets := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		sparseFile(t, filepath.Join(from, name), size, offsets...)
	}
	write(t, filepath.Join(from, "z"), "after the others")
	if blocks(t, filepath.Join(from, "empty")) != 0 {
		t.Skip("the file system has no holes")
	}
	stream, err := pack(t, from, t.Logf)
	if err != nil || len(stream) > 1<<20 {
		t.Fatalf("%d bytes, %v", len(stream), err)
	}
	if _, err := extract(t, to, stream); err != nil {
		t.Fatal(err)
	}
	dirs := []string{to}
	if program, err := exec.LookPath("tar"); err == nil {
		cmd := exec.CommandContext(t.Context(), program, "-xf", "-", "-C", other)
		cmd.Stdin = bytes.NewReader(stream)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, out)
		}
		dirs = append(dirs, other)
	}
	for _, dir := range dirs {
		for name := range files {
			path := filepath.Join(dir, "copy", name)
			if err := exec.CommandContext(t.Context(), "cmp", path, filepath.Join(from, name)).Run(); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if n := blocks(t, path); n > 1024 {
				t.Errorf("%s has %d blocks", path, n)
			}
		}
		if text, err := os.ReadFile(filepath.Join(dir, "copy", "z")); err != nil || string(text) != "after the others" {
			t.Errorf("the file after them: %q, %v", text, err)
		}
	}
}

// TestManyHoles: a file with more holes than a stream can have is copied, with zeros for those at its end.
func TestManyHoles(t *testing.T) {
	defer func(n int) { maxExtents = n }(maxExtents)
	maxExtents = 8
	from, to := t.TempDir(), t.TempDir()
	var offsets []int64
	for i := range int64(maxExtents + 10) {
		offsets = append(offsets, i*16384)
	}
	path := filepath.Join(from, "f")
	sparseFile(t, path, int64(maxExtents+20)*16384, offsets...)
	stream, err := pack(t, from, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := extract(t, to, stream); err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), "cmp", path, filepath.Join(to, "copy", "f")).Run(); err != nil {
		t.Error(err)
	}
}

// TestWhole: hard links, extended attributes and the attributes of the destination itself are kept on request.
func TestWhole(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a"), "one file")
	if err := errors.Join(
		os.Mkdir(filepath.Join(from, "d"), 0o755), os.Link(filepath.Join(from, "a"), filepath.Join(from, "d", "b")),
		os.Chmod(from, os.ModeSetgid|0o750), os.Chmod(to, 0o700),
	); err != nil {
		t.Fatal(err)
	}
	attribute := unix.Setxattr(filepath.Join(from, "a"), "user.origin", []byte("shop\x00=\n"), 0)
	directory := unix.Setxattr(filepath.Join(from, "d"), "user.origin", []byte("d"), 0)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	p := Packer{Stream: w, Out: &out, Whole: true, Warn: t.Logf}
	if err := errors.Join(p.Pack(t.Context(), open(t, from), "."), w.Close()); err != nil {
		t.Fatal(err)
	}
	f := open(t, to)
	defer f.Close()
	x := Extractor{Dir: f, Root: true, Warn: t.Errorf, Attributes: func(h *tar.Header) (Attributes, error) {
		return Attributes{UID: -1, GID: -1, Mode: uint32(h.Mode), ModTime: h.ModTime, Extended: Extended(h)}, nil
	}}
	if _, err := x.Extract(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	a, errA := os.Stat(filepath.Join(to, "a"))
	b, errB := os.Stat(filepath.Join(to, "d", "b"))
	root, errRoot := os.Stat(to)
	if err := errors.Join(errA, errB, errRoot); err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(a, b) {
		t.Error("the hard link is another file")
	}
	if root.Mode() != os.ModeDir|os.ModeSetgid|0o750 {
		t.Errorf("mode of the destination: %v", root.Mode())
	}
	value := make([]byte, 64)
	n, err := unix.Getxattr(filepath.Join(to, "a"), "user.origin", value)
	if attribute == nil && (err != nil || string(value[:n]) != "shop\x00=\n") {
		t.Errorf("extended attribute %q, %v", value[:max(n, 0)], err)
	}
	if n, err := unix.Getxattr(filepath.Join(to, "d"), "user.origin", value); directory == nil && (err != nil || string(value[:n]) != "d") {
		t.Errorf("extended attribute of the directory %q, %v", value[:max(n, 0)], err)
	}
}

// TestRoom: a copy stops before a file system is full.
func TestRoom(t *testing.T) {
	x := Extractor{unproven: 1 << 62}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := x.room(int(dir.Fd()), 1); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v", err)
	}
	x.unproven = 0
	if err := x.room(int(dir.Fd()), 1); err != nil || x.unproven == 0 {
		t.Errorf("error %v", err)
	}
}
