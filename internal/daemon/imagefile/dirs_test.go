package imagefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/supervisor/event"
)

// fakeStore imports archives whose content starts with "image". It remembers them across restarts, as the store of the engine.
type fakeStore struct {
	mu       sync.Mutex
	files    []image.DirFile
	imported map[string]string // by path: the state
	log      []string
	block    chan struct{} // an import of an archive with content "image slow" waits for it
	released int
	reading  string // the archive that waits for block
}

func (s *fakeStore) SetFiles(list []image.DirFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = list
}

func (s *fakeStore) ImportDirFile(ctx context.Context, f image.DirFile, open func() (io.ReadCloser, error)) ([]image.Image, bool, error) {
	s.mu.Lock()
	known := s.imported[f.Path] == f.Origin
	s.mu.Unlock()
	name := []image.Image{{Name: "localhost/" + filepath.Base(f.Path)}}
	if known {
		return name, false, nil
	}
	r, err := open()
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, true, err
	}
	if string(text) == "image slow" {
		s.mu.Lock()
		s.reading = filepath.Base(f.Path)
		s.mu.Unlock()
		select {
		case <-s.block:
		case <-ctx.Done():
			return nil, true, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(string(text), "image") && !strings.Contains(string(text), "oci-layout") {
		s.log = append(s.log, "refuse "+filepath.Base(f.Path))
		return nil, true, &image.Error{Message: "import image archive", Err: errors.New("truncated")}
	}
	s.imported[f.Path] = f.Origin
	s.log = append(s.log, "import "+filepath.Base(f.Path))
	return name, true, nil
}

func (s *fakeStore) PublishFiles(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released++
	return nil
}

// bench runs image directories with short times.
type bench struct {
	t      *testing.T
	store  *fakeStore
	dir    string
	mu     sync.Mutex
	events []string
	stop   func()
}

func newBench(t *testing.T) *bench {
	b := &bench{
		t: t, dir: filepath.Join(t.TempDir(), "images"), store: &fakeStore{imported: map[string]string{}, block: make(chan struct{})},
	}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) options() DirsOptions {
	return DirsOptions{
		Paths: []string{filepath.Join(b.dir, "none"), b.dir},
		times: times{
			settle: 50 * time.Millisecond, give: 200 * time.Millisecond, rescan: time.Minute, look: 5 * time.Millisecond, again: time.Hour,
			stop: 100 * time.Millisecond,
		},
		Emit: func(kind api.EventKind, f event.Fields) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, fmt.Sprintf("%s %s %s%s", kind, filepath.Base(f["archive"]), f["images"], f["error"]))
		},
	}
}

func (b *bench) start() *Dirs {
	b.t.Helper()
	d := NewDirs(b.store, b.options())
	ctx, cancel := context.WithCancel(b.t.Context())
	d.Scan(ctx)
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	b.stop = func() { cancel(); <-done }
	b.t.Cleanup(b.stop)
	return d
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// until waits for a condition.
func (b *bench) until(what string, is func(s *fakeStore) bool) {
	b.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		b.store.mu.Lock()
		ok := is(b.store)
		state := fmt.Sprintf("files %+v, log %v", b.store.files, b.store.log)
		b.store.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("not %s: %s", what, state)
		}
		<-time.After(time.Millisecond)
	}
}

// pending returns the names of the archives that pods wait for. The store is locked.
func (s *fakeStore) pending() (list []string) {
	for _, f := range s.files {
		if f.Pending {
			list = append(list, filepath.Base(f.Path))
		}
	}
	return list
}

func logged(want ...string) func(s *fakeStore) bool {
	return func(s *fakeStore) bool { return slices.Equal(s.log, want) && len(s.pending()) == 0 }
}

func TestImportAtStartAndWhenTheyAppear(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "image")
	b.write("notes.txt", "no image")
	b.write(".b.tar", "image")
	b.start()
	b.until("imported", logged("import a.tar"))
	b.write("c.tar.zst", "image")
	b.until("imported", logged("import a.tar", "import c.tar.zst"))
	layout := filepath.Join(b.dir, "layout")
	if err := os.MkdirAll(layout, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(layout, "oci-layout"), []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write("d.tgz", "image") // wakes it up also if only the layout's own directory has changed
	b.until("imported with the directory", func(s *fakeStore) bool {
		return slices.Contains(s.log, "import layout") && slices.Contains(s.log, "import d.tgz")
	})

	// A restart imports nothing again.
	b.stop()
	b.store.mu.Lock()
	b.store.log = nil
	b.store.mu.Unlock()
	b.start()
	b.write("e.tar", "image")
	b.until("only the new one imported", logged("import e.tar"))
}

func TestBadArchiveIsReportedOnceAndTriedAgain(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "bad")
	b.start()
	b.until("refused", logged("refuse a.tar"))
	b.write("b.tar", "image")
	b.until("imported, without another try of the bad one", logged("refuse a.tar", "import b.tar"))
	b.write("a.tar", "image")
	b.until("imported", logged("refuse a.tar", "import b.tar", "import a.tar"))
	b.mu.Lock()
	defer b.mu.Unlock()
	want := []string{
		"ImageArchiveFailed a.tar truncated", "ImageArchiveImported b.tar localhost/b.tar", "ImageArchiveImported a.tar localhost/a.tar",
	}
	if !slices.Equal(b.events, want) {
		t.Errorf("events %q, want %q", b.events, want)
	}
}

// TestIncompleteArchiveIsWaitedFor writes a file in parts. It must not be read before the last one, and pods wait for it.
func TestIncompleteArchiveIsWaitedFor(t *testing.T) {
	b := newBench(t)
	d := NewDirs(b.store, b.options())
	now := time.Now()
	d.now = func() time.Time { return now }
	for _, text := range []string{"b", "ba", "image"} {
		b.write("a.tar", text)
		d.Scan(t.Context())
		if a, changing := d.next(); a != nil || !changing {
			t.Fatalf("archive with %q: next %v, changing %v", text, a, changing)
		}
		if got := b.store.pending(); !slices.Equal(got, []string{"a.tar"}) {
			t.Errorf("pods wait for %q", got)
		}
		now = now.Add(40 * time.Millisecond)
	}
	now = now.Add(20 * time.Millisecond)
	d.Scan(t.Context())
	if a, _ := d.next(); a == nil {
		t.Fatal("the complete archive is not read")
	}
	// One that changes all the time is read, and refused, after a while.
	now = now.Add(time.Second)
	b.write("a.tar", "b")
	b.write("a.tar", "ba")
	d.Scan(t.Context())
	if a, _ := d.next(); a == nil {
		t.Fatal("the archive that changes all the time is not read")
	}
}

func TestLargeArchiveDoesNotHideNewOnes(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "image slow")
	b.start()
	b.until("read", func(s *fakeStore) bool { return s.reading == "a.tar" })
	b.write("b.tar", "image")
	b.until("both waited for", func(s *fakeStore) bool { return slices.Equal(s.pending(), []string{"a.tar", "b.tar"}) })
	close(b.store.block)
	b.until("both imported", logged("import a.tar", "import b.tar"))
}

func TestRemovedArchiveReleasesItsImages(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "image")
	b.start()
	b.until("imported", func(s *fakeStore) bool { return len(s.log) == 1 && s.released == 1 })
	if err := os.Remove(filepath.Join(b.dir, "a.tar")); err != nil {
		t.Fatal(err)
	}
	b.until("released", func(s *fakeStore) bool { return s.released == 2 && len(s.files) == 0 })
}
