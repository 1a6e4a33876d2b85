package filecopy

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/ocitar"
)

const secret = "swordfish-of-the-host"

// open opens a directory as a tree.
func open(t testing.TB, dir string) *File {
	t.Helper()
	r, err := OpenHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return f
}

// warnings collects warnings.
type warnings []string

func (w *warnings) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

func pack(t testing.TB, dir string, warn Warn) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	p := Packer{Stream: w, Out: &out, Warn: warn}
	err := p.Pack(t.Context(), open(t, dir), "copy")
	return out.Bytes(), errors.Join(err, w.Close())
}

func keep(h *tar.Header) (Attributes, error) {
	return Attributes{UID: -1, GID: -1, Mode: uint32(h.Mode) & 0o777, ModTime: h.ModTime}, nil
}

func extract(t testing.TB, dir string, stream []byte) (w warnings, err error) {
	t.Helper()
	f := open(t, dir)
	defer f.Close()
	x := Extractor{Dir: f, Attributes: keep, Warn: w.add}
	_, err = x.Extract(t.Context(), bytes.NewReader(stream))
	return w, err
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o640)); err != nil {
		t.Fatal(err)
	}
}

// archive returns a stream with entries.
func archive(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text = "from the archive"
			h.Size = int64(len(text))
		}
		h.Mode |= 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	names := []string{"a", "new\nline", "not\xffutf-8", "-flag", strings.Repeat("n", 255), "d/e/f", "käse"}
	for _, name := range names {
		write(t, filepath.Join(from, name), "content of "+name)
	}
	when := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := errors.Join(
		os.Symlink("/etc/passwd", filepath.Join(from, "link")), unix.Mkfifo(filepath.Join(from, "fifo"), 0o600),
		os.Chmod(filepath.Join(from, "a"), 0o751), os.Chtimes(filepath.Join(from, "a"), when, when),
		os.Mkdir(filepath.Join(from, "shut"), 0o500),
	); err != nil {
		t.Fatal(err)
	}
	var w warnings
	stream, err := pack(t, from, w.add)
	if err != nil || len(w) != 1 || !strings.Contains(w[0], `"copy/fifo" left out`) {
		t.Fatalf("got %v, warnings %q", err, w)
	}
	for range 2 { // the second copy replaces the files of the first one
		if _, err := extract(t, to, stream); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(to, "copy", name)); err != nil || string(text) != "content of "+name {
			t.Errorf("%q: got %q, %v", name, text, err)
		}
	}
	info, err := os.Stat(filepath.Join(to, "copy/a"))
	if err != nil || info.Mode() != 0o751 || !info.ModTime().Equal(when) {
		t.Errorf("got %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(to, "copy/shut")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("read-only directory: got %v, %v", info, err)
	}
	if target, err := os.Readlink(filepath.Join(to, "copy/link")); err != nil || target != "/etc/passwd" {
		t.Errorf("link: got %q, %v", target, err)
	}
	if left, err := filepath.Glob(filepath.Join(to, "copy/.podstead-cp-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// TestHostileArchives extracts archives that try to write outside of the destination.
func TestHostileArchives(t *testing.T) {
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	for _, test := range []struct {
		name    string
		entries func(outside string) []tar.Header
		fails   bool
	}{
		{"dots", func(string) []tar.Header { return []tar.Header{file("../secret")} }, true},
		{"dots in the middle", func(string) []tar.Header { return []tar.Header{file("a/../../secret")} }, true},
		{"absolute name", func(o string) []tar.Header { return []tar.Header{file(o)} }, false},
		{"file through a link to the host", func(o string) []tar.Header {
			return []tar.Header{link("x", filepath.Dir(o)), file("x/secret")}
		}, true},
		{"file through a relative link", func(string) []tar.Header { return []tar.Header{link("x", ".."), file("x/secret")} }, true},
		{"directory over a link", func(o string) []tar.Header {
			return []tar.Header{link("x", filepath.Dir(o)), {Typeflag: tar.TypeDir, Name: "x/"}, file("x/secret")}
		}, true},
		{"file over a link", func(o string) []tar.Header { return []tar.Header{link("x", o), file("x")} }, false},
		{"chain of links", func(string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeDir, Name: "d"}, link("d/y", ".."), link("z", "d/y/.."), file("z/secret")}
		}, true},
		{"hard link to the host", func(o string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeLink, Name: "x", Linkname: o}, file("x")}
		}, true},
		{"hard link with dots", func(string) []tar.Header {
			return []tar.Header{{Typeflag: tar.TypeLink, Name: "x", Linkname: "../secret"}}
		}, true},
		{"hard link to a link", func(o string) []tar.Header {
			return []tar.Header{link("l", o), {Typeflag: tar.TypeLink, Name: "x", Linkname: "l"}, file("x")}
		}, true},
		{"devices", func(string) []tar.Header {
			return []tar.Header{
				{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3},
				{Typeflag: tar.TypeBlock, Name: "disk"},
				{Typeflag: tar.TypeFifo, Name: "fifo"},
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := t.TempDir()
			outside, to := filepath.Join(top, "secret"), filepath.Join(top, "to")
			write(t, outside, secret)
			if err := os.Mkdir(to, 0o755); err != nil {
				t.Fatal(err)
			}
			w, err := extract(t, to, archive(t, test.entries(outside)...))
			if (err != nil) != test.fails {
				t.Errorf("got %v", err)
			}
			if text, err := os.ReadFile(outside); err != nil || string(text) != secret {
				t.Errorf("the file outside has %q, %v", text, err)
			}
			if entries, err := os.ReadDir(top); err != nil || len(entries) != 2 {
				t.Errorf("outside: %v, %v", entries, err)
			}
			if test.name == "devices" {
				if entries, err := os.ReadDir(to); err != nil || len(entries) > 0 || len(w) != 3 {
					t.Errorf("created %v, %v, warnings %q", entries, err, w)
				}
			}
		})
	}
}

// TestExistingLinks checks that links that exist at the destination are not followed.
func TestExistingLinks(t *testing.T) {
	top := t.TempDir()
	outside, to := filepath.Join(top, "out/secret"), filepath.Join(top, "to")
	write(t, outside, secret)
	if err := errors.Join(os.Mkdir(to, 0o755), os.Symlink(filepath.Dir(outside), filepath.Join(to, "d")),
		os.Symlink(outside, filepath.Join(to, "f"))); err != nil {
		t.Fatal(err)
	}
	if _, err := extract(t, to, archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "d/secret"})); err == nil ||
		!strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("directory: got %v", err)
	}
	if _, err := extract(t, to, archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "f"})); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != secret {
		t.Errorf("the file outside has %q, %v", text, err)
	}
}

// TestSwappedDirectory exchanges a directory of the destination with a link while files are created in it.
func TestSwappedDirectory(t *testing.T) {
	top := t.TempDir()
	to, outside := filepath.Join(top, "to"), filepath.Join(top, "outside")
	if err := errors.Join(os.MkdirAll(filepath.Join(to, "d"), 0o755), os.Mkdir(outside, 0o755),
		os.Symlink(outside, filepath.Join(to, "l"))); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(to, "d"), unix.AT_FDCWD, filepath.Join(to, "l"), unix.RENAME_EXCHANGE)
			}
		}
	})
	stream := archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "d"}, tar.Header{Typeflag: tar.TypeReg, Name: "d/x"},
		tar.Header{Typeflag: tar.TypeReg, Name: "d/e/y"})
	done := 0
	for range 1000 {
		if _, err := extract(t, to, stream); err == nil {
			done++
		}
	}
	close(stop)
	swaps.Wait()
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("created outside: %v, %v", entries, err)
	}
	if done == 0 {
		t.Error("no copy succeeded, the test proves nothing")
	}
}

// TestPackSwapped packs a tree in which a file and a directory are exchanged with links to the host all the time.
func TestPackSwapped(t *testing.T) {
	top := t.TempDir()
	from, outside := filepath.Join(top, "from"), filepath.Join(top, "host/secret")
	write(t, outside, secret)
	write(t, filepath.Join(from, "d/secret"), "inside")
	write(t, filepath.Join(from, "f"), "inside")
	if err := errors.Join(os.Symlink(filepath.Dir(outside), filepath.Join(from, "dl")),
		os.Symlink(outside, filepath.Join(from, "fl"))); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	for _, pair := range [][2]string{{"d", "dl"}, {"f", "fl"}} {
		swaps.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(from, pair[0]), unix.AT_FDCWD, filepath.Join(from, pair[1]),
						unix.RENAME_EXCHANGE)
				}
			}
		})
	}
	for range 1000 {
		stream, _ := pack(t, from, func(string, ...any) {})
		if bytes.Contains(stream, []byte(secret)) {
			t.Error("the archive contains the file of the host")
			break
		}
	}
	close(stop)
	swaps.Wait()
}

// TestChangingSize checks that the archive of a file that grows and shrinks while it is read is well-formed.
func TestChangingSize(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, strings.Repeat("x", 1<<20))
	write(t, filepath.Join(dir, "g"), "the next file")
	stop := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for size := int64(0); ; size = (size + 300_001) % (3 << 20) {
			select {
			case <-stop:
				return
			default:
				if err := os.Truncate(path, size); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 200 {
		stream, err := pack(t, dir, func(string, ...any) {})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for r := tar.NewReader(bytes.NewReader(stream)); ; n++ {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if n != 3 {
			t.Fatalf("got %d entries, want 3", n)
		}
	}
	close(stop)
	changes.Wait()
}

func TestSparse(t *testing.T) {
	const size = 256 << 20
	to := t.TempDir()
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: size, Mode: 0o600})
		if err == nil {
			_, err = io.CopyN(out, zeros{}, size-3)
		}
		if err == nil {
			_, err = out.Write([]byte("end"))
		}
		w.CloseWithError(errors.Join(err, out.Close()))
	}()
	dir := open(t, to)
	defer dir.Close()
	x := Extractor{Dir: dir, Attributes: keep, Warn: t.Errorf}
	if _, err := x.Extract(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var s unix.Stat_t
	if err := unix.Stat(filepath.Join(to, "f"), &s); err != nil || s.Size != size || s.Blocks*512 > 1<<20 {
		t.Errorf("got %d bytes with %d on disk, %v", s.Size, s.Blocks*512, err)
	}
}

// TestCutStream checks that a stream that ends early is an error and leaves no part of a file.
func TestCutStream(t *testing.T) {
	to := t.TempDir()
	stream := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "f"})
	if _, err := extract(t, to, stream[:520]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestDeepTree(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range maxDepth + 10 {
		if err := unix.Mkdirat(fd, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		_ = unix.Close(fd)
		if fd = next; err != nil {
			t.Fatal(err)
		}
	}
	_ = unix.Close(fd)
	if _, err := pack(t, dir, t.Errorf); err == nil || !strings.Contains(err.Error(), "levels of directories") {
		t.Errorf("got %v", err)
	}
}

// FuzzExtract extracts any stream, and checks that nothing outside of the destination changes.
func FuzzExtract(f *testing.F) {
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: ".."}, tar.Header{Typeflag: tar.TypeReg, Name: "a/secret"}))
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "../secret"}))
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeReg, Name: "x/../../y"}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		top := t.TempDir()
		to := filepath.Join(top, "to")
		write(t, filepath.Join(top, "secret"), secret)
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		_, _ = extract(t, to, stream)
		entries, err := os.ReadDir(top)
		if text, readErr := os.ReadFile(filepath.Join(top, "secret")); errors.Join(err, readErr) != nil || len(entries) != 2 ||
			string(text) != secret {
			t.Errorf("outside: %v, secret %q, %v, %v", entries, text, err, readErr)
		}
		_ = filepath.WalkDir(to, func(path string, entry fs.DirEntry, _ error) error { // so that the directory can be removed
			if !entry.IsDir() {
				return nil // Chmod would follow a link
			}
			return os.Chmod(path, 0o700)
		})
	})
}

// lastRead calls a function when all data is read.
type lastRead struct {
	*bytes.Reader
	done func()
}

func (l lastRead) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if l.Len() == 0 {
		l.done()
	}
	return n, err
}

// TestHoleEnds: the copy of a file that is one hole ends with its context, and that of a file that is larger than any ends at once.
func TestHoleEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := Extractor{Dir: open(t, t.TempDir()), Attributes: keep, Warn: (&warnings{}).add}
	defer x.Dir.Close()
	if _, err := x.Extract(ctx, lastRead{bytes.NewReader(ocitar.PAXHole("hole", 1<<43)), cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	if _, err := x.Extract(t.Context(), bytes.NewReader(ocitar.PAXHole("hole", 1<<62))); err == nil {
		t.Error("a file of 4 EiB was created")
	}
}

// TestExistingDirectoriesKeepAttributes: as with cp, a copy changes only what it creates.
func TestExistingDirectoriesKeepAttributes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := extract(t, dir,
		archive(t, tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o755},
			tar.Header{Name: "tmp/new/", Typeflag: tar.TypeDir, Mode: 0o775})); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"tmp": os.ModeDir | os.ModeSticky | 0o777, "tmp/new": os.ModeDir | 0o775} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// TestTimesAreExact: times are kept with their nanoseconds.
func TestTimesAreExact(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "f"), "data")
	at := time.Unix(1_700_000_000, 999_999_999)
	if err := os.Chtimes(filepath.Join(from, "f"), at, at); err != nil {
		t.Fatal(err)
	}
	stream, err := pack(t, from, (&warnings{}).add)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := extract(t, to, stream); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(to, "copy", "f"))
	if err != nil || !info.ModTime().Equal(at) {
		t.Errorf("%v, %v, want %v", info, err, at)
	}
}
