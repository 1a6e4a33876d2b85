package imagefile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/runtime/image"
)

// TestSignatureBesideChangesState: a signature that arrives beside a file or a directory in the OCI layout changes its state.
func TestSignatureBesideChangesState(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "image")
	if err := os.Mkdir(filepath.Join(b.dir, "layout"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("layout/oci-layout", "{}")
	origins := func() map[string]string {
		archives, err := listArchives(b.dir)
		if err != nil || len(archives) != 2 {
			t.Fatalf("archives %v, %v", archives, err)
		}
		states := map[string]string{}
		for _, a := range archives {
			states[filepath.Base(a.path)] = a.origin
		}
		return states
	}
	before := origins()
	b.write("a.tar.sig", "YQ==")
	b.write("layout.sigstore.json", "{}")
	after := origins()
	for name := range before {
		if before[name] == after[name] {
			t.Errorf("%s has the same state with a signature", name)
		}
	}
}

// TestReverify: a change of the policy for signatures gives all archives to the store again, also one whose import is in progress.
func TestReverify(t *testing.T) {
	b := newBench(t)
	d := NewDirs(b.store, b.options())
	b.write("a.tar", "image")
	d.now = func() time.Time { return time.Now().Add(time.Minute) }
	d.Scan(t.Context())
	a, _ := d.next()
	if a == nil {
		t.Fatal("the archive is not read")
	}
	d.finish(t.Context(), d.work(t.Context(), a.file()))
	if next, _ := d.next(); next != nil {
		t.Fatal("the imported archive is read again")
	}
	d.forget()
	if next, _ := d.next(); next != a {
		t.Fatal("the archive is not looked at again after a change of the policy")
	}
	d.finish(t.Context(), d.work(t.Context(), a.file()))
	if next, _ := d.next(); next != a {
		t.Error("an import from before the change of the policy counts")
	}
	d.outdated = false // as begin does
	d.finish(t.Context(), d.work(t.Context(), a.file()))
	if next, _ := d.next(); next != nil {
		t.Error("the archive is looked at a third time")
	}
}

// TestReverifyWakesUp: a request reaches Run.
func TestReverifyWakesUp(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "image")
	d := b.start()
	b.until("imported", logged("import a.tar"))
	b.store.mu.Lock()
	clear(b.store.imported) // as if its images were not admitted any more
	b.store.mu.Unlock()
	d.Reverify()
	b.until("imported again", logged("import a.tar", "import a.tar"))
}

// TestHungDirectory: a directory on a file system that does not respond is one that cannot be listed, and Run ends although an import does
// not.
func TestHungDirectory(t *testing.T) {
	b := newBench(t)
	b.write("a.tar", "image")
	d := NewDirs(b.store, b.options())
	d.Scan(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	respond := make(chan struct{})
	_, _ = disk.Call(ctx, d.disks[b.dir], func() (struct{}, error) {
		cancel()
		<-respond
		return struct{}{}, nil
	})
	d.Scan(t.Context())
	if len(d.archives) != 1 || !d.failing[b.dir] {
		t.Errorf("archives %v, failing %v; want the archive that is known, and a failure", d.archives, d.failing)
	}
	close(respond)

	deaf := &deafStore{started: make(chan struct{}), respond: make(chan struct{})}
	defer close(deaf.respond)
	run, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		NewDirs(deaf, b.options()).Run(run)
	}()
	<-deaf.started
	stop()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("Run waits for an import that does not end")
	}
}

// deafStore imports from a file system that does not respond.
type deafStore struct {
	started, respond chan struct{}
}

func (s *deafStore) SetFiles([]image.DirFile)           {}
func (s *deafStore) PublishFiles(context.Context) error { return nil }
func (s *deafStore) ImportDirFile(context.Context, image.DirFile, func() (io.ReadCloser, error)) ([]image.Image, bool, error) {
	close(s.started)
	<-s.respond
	return nil, false, errors.New("closed")
}
