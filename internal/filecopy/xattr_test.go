package filecopy

import (
	"archive/tar"
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAttributesLeftOut: an extended attribute that an archive cannot have is left out with a warning. The file is copied.
func TestAttributesLeftOut(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "content")
	for _, name := range []string{"user.a=b", "user.kept"} {
		err := unix.Setxattr(filepath.Join(dir, "file"), name, []byte("value"), 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skip("the file system has no extended attributes")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	var warned warnings
	p := Packer{Stream: tar.NewWriter(&out), Out: &out, Whole: true, Warn: warned.add}
	if err := errors.Join(p.Pack(t.Context(), open(t, dir), "."), p.Stream.Close()); err != nil {
		t.Fatal(err)
	}
	if want := `"file": extended attribute "user.a=b" left out: archives support no = in names`; !slices.Equal(warned, []string{want}) {
		t.Errorf("warnings %q, want %q", warned, want)
	}
	r := tar.NewReader(&out)
	for {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if got := Extended(h); len(got) != 1 || got["user.kept"] != "value" {
			t.Errorf("attributes %q", got)
		}
		return
	}
}

// TestMaxAttributes: a header with as many extended attributes as are copied can be written and read.
func TestMaxAttributes(t *testing.T) {
	if whyLeftOut("user.a", maxAttributes) != "" || whyLeftOut("user.a", maxAttributes+1) == "" {
		t.Error("the bound is not exact")
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("n", 64<<10), PAXRecords: map[string]string{}}
	for size, name := 0, "user."; ; name += "x" { // short values need the largest header
		if size += len(name) + 1; whyLeftOut(name, size) != "" {
			break
		}
		h.PAXRecords[attributeKey+name] = "v"
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.WriteHeader(h), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := tar.NewReader(&out).Next(); err != nil || len(Extended(got)) != len(h.PAXRecords) {
		t.Error(err)
	}
}
