package filecopy

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stalled returns a stream with one file in the directory d, which stops in the middle of the file until the returned function is called.
func stalled(t *testing.T) (stream io.Reader, proceed func()) {
	t.Helper()
	whole := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "d/new"})
	r, w := io.Pipe()
	more := make(chan struct{})
	go func() {
		_, _ = w.Write(whole[:515])
		<-more
		_, _ = w.Write(whole[515:])
		_ = w.Close()
	}()
	return r, func() { close(more) }
}

func temporaryFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, pattern := range []string{temporaryPrefix + "*", "*/" + temporaryPrefix + "*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
	}
	return names
}

// The next copy removes what a killed one has left in the directories of the stream. It keeps other files, those that are new, and those
// of a copy in progress.
func TestLeftovers(t *testing.T) {
	before := leftoverAge
	t.Cleanup(func() { leftoverAge = before })
	dir := t.TempDir()
	stale := []string{temporaryPrefix + "A", "d/" + temporaryPrefix + "B"}
	kept := []string{"d/.podstead-other", "other/" + temporaryPrefix + "C"}
	for _, name := range append(stale, kept...) {
		write(t, filepath.Join(dir, name), "left")
	}
	other := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "d/file"})
	if _, err := extract(t, dir, other); err != nil {
		t.Fatal(err)
	}
	if got := temporaryFiles(t, dir); len(got) != 3 {
		t.Errorf("new temporary files were removed: %q remain", got)
	}

	leftoverAge = 0
	stream, proceed := stalled(t)
	f := open(t, dir)
	defer f.Close()
	done := make(chan error, 1)
	go func() {
		x := Extractor{Dir: f, Attributes: keep, Warn: func(string, ...any) {}}
		_, err := x.Extract(t.Context(), stream)
		done <- err
	}()
	for end := time.Now().Add(time.Minute); !isWriting(t, dir); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the copy does not write its file: %q", temporaryFiles(t, dir))
		}
	}
	if _, err := extract(t, dir, other); err != nil {
		t.Fatal(err)
	}
	if got := temporaryFiles(t, dir); len(got) != 2 { // that of the copy in progress, and the one in a directory that is not in the stream
		t.Errorf("temporary files %q, want 2", got)
	}
	proceed()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, name := range append(kept, "d/new", "d/file") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// isWriting reports whether a copy has locked its file: it sets the size after that.
func isWriting(t *testing.T, dir string) bool {
	t.Helper()
	for _, name := range temporaryFiles(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Size() == int64(len("from the archive")) {
			return true
		}
	}
	return false
}
