package volume

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/podstead/podstead/internal/filecopy"
)

func free() error { return nil }

// volumeWith creates a persistent volume with a file of each name, whose content is the name.
func volumeWith(t *testing.T, s *Set, name string, files ...string) string {
	t.Helper()
	dir := s.claimDir(name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(file), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestTransfer exports a volume and imports it: as a new one, over one that is not empty, and over one that a pod uses.
func TestTransfer(t *testing.T) {
	s := newSet(t, nil)
	from := volumeWith(t, s, "from", "a", "b")
	if err := errors.Join(
		os.Link(filepath.Join(from, "a"), filepath.Join(from, "linked")), os.Symlink("/etc/passwd", filepath.Join(from, "link")),
	); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := s.ExportClaim(t.Context(), "from", &out); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ExportClaim(t.Context(), "none", &out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a volume that does not exist: %v", err)
	}
	archive := out.Bytes()
	if _, err := s.ImportClaim(t.Context(), "new", bytes.NewReader(archive), false, free); err != nil {
		t.Fatal(err)
	}
	full := volumeWith(t, s, "full", "old")
	_, err := s.ImportClaim(t.Context(), "full", bytes.NewReader(archive), false, free)
	if e, ok := errors.AsType[*filecopy.Error](err); !ok || e.Kind != filecopy.Conflict || !strings.Contains(e.Hint, "--replace") {
		t.Errorf("a volume that is not empty: %v", err)
	}
	inUse := errors.New("in use")
	if _, err := s.ImportClaim(t.Context(), "full", bytes.NewReader(archive), true, func() error { return inUse }); !errors.Is(err, inUse) {
		t.Errorf("a volume that is in use: %v", err)
	}
	if got := namesIn(t, full); !slices.Equal(got, []string{"old"}) {
		t.Fatalf("refused imports have changed the volume: %q", got)
	}
	if _, err := s.ImportClaim(t.Context(), "full", bytes.NewReader(archive), true, free); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{s.claimDir("new"), full} {
		a, errA := os.Stat(filepath.Join(dir, "a"))
		linked, errLinked := os.Stat(filepath.Join(dir, "linked"))
		info, errDir := os.Stat(dir)
		if err := errors.Join(errA, errLinked, errDir); err != nil {
			t.Fatal(err)
		}
		got := namesIn(t, dir)
		if !slices.Equal(got, []string{"a", "b", "link", "linked"}) || !os.SameFile(a, linked) || info.Mode().Perm() != 0o750 {
			t.Errorf("%s: %q, mode %v", dir, got, info.Mode())
		}
	}
	if got := namesIn(t, s.opts.ClaimsDir); !slices.Equal(got, []string{"from", "full", "new"}) {
		t.Errorf("directories %q", got)
	}
}

// TestFailedImport: an archive that is damaged, cut off, or leads out of the volume changes nothing and leaves nothing.
func TestFailedImport(t *testing.T) {
	s := newSet(t, nil)
	volumeWith(t, s, "from", "a", "b")
	volumeWith(t, s, "full", "old")
	var out bytes.Buffer
	if _, err := s.ExportClaim(t.Context(), "from", &out); err != nil {
		t.Fatal(err)
	}
	entry := func(h tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&h), w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const endAndBlock = 1024 + 512
	for name, archive := range map[string][]byte{
		"nothing": {}, "text": []byte("junk"), "compressed": {0x1f, 0x8b, 8, 0, 0}, "no files": make([]byte, 1024),
		"cut off in a file":       out.Bytes()[:out.Len()-1024-256],
		"cut off between files":   out.Bytes()[:out.Len()-endAndBlock-512*3],
		"without an end":          out.Bytes()[:out.Len()-1024],
		"name out of the volume":  entry(tar.Header{Name: "../out", Typeflag: tar.TypeReg}),
		"link out of the volume":  entry(tar.Header{Name: "a", Linkname: "../full/old", Typeflag: tar.TypeLink}),
		"link to an absolute one": entry(tar.Header{Name: "a", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}),
	} {
		for _, volume := range []string{"full", "new"} {
			_, err := s.ImportClaim(t.Context(), volume, bytes.NewReader(archive), true, free)
			if e, ok := errors.AsType[*filecopy.Error](err); !ok || e.Kind != filecopy.Conflict {
				t.Errorf("%s into %s: %v", name, volume, err)
			}
		}
		if got := namesIn(t, s.claimDir("full")); !slices.Equal(got, []string{"old"}) {
			t.Errorf("%s: files %q", name, got)
		}
		if got := namesIn(t, s.opts.ClaimsDir); !slices.Equal(got, []string{"from", "full"}) {
			t.Errorf("%s: directories %q", name, got)
		}
	}
	if err := os.Symlink(s.claimDir("full"), s.claimDir("elsewhere")); err != nil {
		t.Fatal(err)
	}
	_, err := s.ImportClaim(t.Context(), "elsewhere", &out, true, free)
	if err == nil || !strings.Contains(err.Error(), "is a link or a mount point") {
		t.Errorf("a link of the administrator: %v", err)
	}
}

// atEnd calls a function when its reader is at the end.
type atEnd struct {
	io.Reader
	call func()
}

func (r atEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		r.call()
	}
	return n, err
}

// TestCancelledImport: an import that is cancelled changes nothing, also after the whole archive was read.
func TestCancelledImport(t *testing.T) {
	s := newSet(t, nil)
	volumeWith(t, s, "from", "a")
	full := volumeWith(t, s, "full", "old")
	var out bytes.Buffer
	if _, err := s.ExportClaim(t.Context(), "from", &out); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.importClaim(ctx, "full", atEnd{&out, cancel}, true); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if got := namesIn(t, full); !slices.Equal(got, []string{"old"}) {
		t.Errorf("files %q", got)
	}
}

// TestImportForgetsGroup: pods that have used a volume change the group of its files again after an import.
func TestImportForgetsGroup(t *testing.T) {
	s := newSet(t, nil)
	volumeWith(t, s, "from", "a")
	var out bytes.Buffer
	if _, err := s.ExportClaim(t.Context(), "from", &out); err != nil {
		t.Fatal(err)
	}
	for name, note := range map[string]string{"data": "full 2000", "others": "full-too 2000"} {
		file := filepath.Join(s.filesDir("uid-1"), grantedPrefix+name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(note), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ImportClaim(t.Context(), "full", &out, true, free); err != nil {
		t.Fatal(err)
	}
	if got := namesIn(t, s.filesDir("uid-1")); !slices.Equal(got, []string{grantedPrefix + "others"}) {
		t.Errorf("notes %q", got)
	}
}

// onWrite calls a function before each write.
type onWrite struct {
	io.Writer
	call func()
}

func (w onWrite) Write(p []byte) (int, error) {
	w.call()
	return w.Writer.Write(p)
}

// TestExportOfReplacedVolume: the export of a volume that is deleted or replaced meanwhile fails, and its archive is not valid.
func TestExportOfReplacedVolume(t *testing.T) {
	for name, change := range map[string]func(*Set, []byte) error{
		"deleted": func(s *Set, _ []byte) error { return s.RemoveClaim(t.Context(), "full") },
		"replaced": func(s *Set, archive []byte) error {
			_, err := s.ImportClaim(t.Context(), "full", bytes.NewReader(archive), true, free)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(t, nil)
			volumeWith(t, s, "full", "a", "b")
			var archive, out bytes.Buffer
			if _, err := s.ExportClaim(t.Context(), "full", &archive); err != nil {
				t.Fatal(err)
			}
			changed := sync.OnceFunc(func() {
				if err := change(s, archive.Bytes()); err != nil {
					t.Error(err)
				}
			})
			if _, err := s.ExportClaim(t.Context(), "full", onWrite{&out, changed}); err == nil {
				t.Error("the export has succeeded")
			}
			if _, err := s.ImportClaim(t.Context(), "copy", &out, true, free); err == nil {
				t.Error("the archive is valid")
			}
		})
	}
}

// TestUnfinished: what a killed daemon has left of imports and removals is deleted after the next start. It is no volume.
func TestUnfinished(t *testing.T) {
	s := newSet(t, nil)
	volumeWith(t, s, "kept", "file")
	for _, name := range []string{importPrefix + "a", removedPrefix + "a", leftPrefix + "1"} {
		if err := os.MkdirAll(filepath.Join(s.opts.ClaimsDir, name, "dir"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	next, err := New(nil, s.opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{importPrefix, removedPrefix} { // a new import could use it
		if left, _ := filepath.Glob(filepath.Join(s.opts.ClaimsDir, prefix+"*")); len(left) > 0 {
			t.Errorf("%q is in the way of other calls", left)
		}
	}
	if err := next.SweepClaims(t.Context()); err != nil {
		t.Error(err)
	}
	if got := namesIn(t, s.opts.ClaimsDir); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("directories %q", got)
	}
}
