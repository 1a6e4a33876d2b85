package imagefile

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(t.Context(), dir); !errors.Is(err, ErrNoLayout) {
		t.Errorf("error %v", err)
	}
	write(t, filepath.Join(dir, "oci-layout"), "{}")
	write(t, filepath.Join(dir, "blobs/sha256/abc"), "blob")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), dir)
	if err != nil || a.Size != 6 {
		t.Fatalf("size %d, %v", a.Size, err)
	}
	got := map[string]string{}
	for r := tar.NewReader(a); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(data)
	}
	if len(got) != 2 || got["oci-layout"] != "{}" || got["blobs/sha256/abc"] != "blob" {
		t.Errorf("files %q", got)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	// A reader that gives up ends the writer.
	if a, err = Open(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	if _, err := Open(t.Context(), path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	write(t, path, "text")
	a, err := Open(t.Context(), path)
	if err != nil || a.Size != 4 {
		t.Fatalf("%+v, %v", a, err)
	}
	defer a.Close()
	if data, err := io.ReadAll(a); string(data) != "text" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.tar")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	if err := Write(path, 0o666, text("one")); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("connection lost")
	err := Write(path, 0o666, func(w io.Writer) error { return errors.Join(text("half")(w), lost) })
	if !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "one" {
		t.Errorf("file %q, %v: want the old one", data, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if err := Write("/dev/null", 0o666, text("device")); err != nil {
		t.Error(err)
	}
	if err := Write(filepath.Join(dir, "none", "out.tar"), 0o666, text("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestWriteThroughLink: the target of a link is written, and the link stays. /dev/stdout is such a link.
func TestWriteThroughLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte("a longer text"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, 0o666, func(w io.Writer) error { _, err := io.WriteString(w, "archive"); return err }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("link: %v, %v", info, err)
	}
	if got, err := os.ReadFile(target); string(got) != "archive" || err != nil {
		t.Errorf("target: %q, %v", got, err)
	}
}
