package image_test

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// dirFile is an archive in an image directory.
func dirFile(path, origin string) image.DirFile {
	return image.DirFile{Path: path, Origin: origin}
}

// loadDir imports archives of an image directory in order. It returns how many were read.
func loadDir(ctx context.Context, t *testing.T, w *env, files ...image.DirFile) (reads int) {
	t.Helper()
	w.store.SetFiles(files)
	for _, f := range files {
		_, read, err := w.store.ImportDirFile(ctx, f, func() (io.ReadCloser, error) { return os.Open(f.Path) })
		if err != nil {
			t.Fatal(err)
		}
		if read {
			reads++
		}
	}
	return reads
}

// version returns the variable in the image that pods find by a name.
func version(ctx context.Context, t *testing.T, w *env, name string) string {
	t.Helper()
	img, err := w.store.In().Ensure(ctx, name, spec.PullNever, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := w.store.Config(ctx, img)
	if err != nil {
		t.Fatal(err)
	}
	return config.Config.Env[0]
}

func wantVersion(ctx context.Context, t *testing.T, w *env, name, want string) {
	t.Helper()
	if got := version(ctx, t, w, name); got != "VERSION="+want {
		t.Errorf("%s has %s, want %s", name, got, want)
	}
}

func TestDirFileIsHeldWhileItIsThere(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	const name = "localhost/shop:1"
	f := dirFile(save(t, sample(name, "one")), "a")
	if n := loadDir(ctx, t, w, f); n != 1 {
		t.Errorf("%d archives read, want 1", n)
	}
	if n := loadDir(ctx, t, w, f); n != 0 {
		t.Errorf("an unchanged archive was read again")
	}
	wantVersion(ctx, t, w, name, "one")
	entries := catalog(ctx, t, w)
	if e := entries[name]; len(entries) != 1 || e.Scoped {
		t.Errorf("entries %+v, want %s", entries, name)
	}
	w.wantClaims(ctx, t, name, "imageDirectory "+f.Path)
	if claims, err := w.store.Claims(ctx); err != nil || len(claims) != 2 {
		t.Errorf("claims %v, %v; want one on the name and one on the record of the archive", claims, err)
	}

	// A removed archive releases its image, whose name remains until something removes it.
	loadDir(ctx, t, w)
	if err := w.store.PublishFiles(ctx); err != nil {
		t.Fatal(err)
	}
	wantVersion(ctx, t, w, name, "one")
	if claims, err := w.store.Claims(ctx); err != nil || len(claims) != 0 {
		t.Errorf("claims %v, %v; want none", claims, err)
	}
	if err := w.store.Forget(ctx, name); err != nil {
		t.Fatal(err)
	}
	w.collect(ctx, t)
	if n := w.blobs(ctx, t); n != 0 {
		t.Errorf("%d blobs remain", n)
	}
}

func TestNewerDirFileUpdatesImage(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	const name = "localhost/shop:latest" // without a pull policy: an image of an archive is not pulled
	path := save(t, sample(name, "one"))
	loadDir(ctx, t, w, dirFile(path, "a"))
	newer := save(t, sample(name, "two"))
	if err := os.Rename(newer, path); err != nil {
		t.Fatal(err)
	}
	loadDir(ctx, t, w, dirFile(path, "b"))
	img, err := w.store.In().Ensure(ctx, name, "", nil)
	if err != nil || img.Pulled || !img.FromArchive {
		t.Errorf("image %+v, %v; want that of the archive", img, err)
	}
	wantVersion(ctx, t, w, name, "two")
	// An import by hand replaces the name until the archive changes, also after a restart.
	importAll(ctx, t, w, sample(name, "three"))
	loadDir(ctx, t, w, dirFile(path, "b"))
	wantVersion(ctx, t, w, name, "three")
	entries := catalog(ctx, t, w)
	w.wantClaims(ctx, t, name, "person")
	if len(entries) != 2 {
		t.Errorf("entries %+v, want the imported one, and that of the archive", entries)
	}
	loadDir(ctx, t, w, dirFile(path, "c"))
	wantVersion(ctx, t, w, name, "two")
	// A name that was removed is given again.
	if err := w.store.Forget(ctx, name); err != nil {
		t.Fatal(err)
	}
	loadDir(ctx, t, w, dirFile(path, "c"))
	wantVersion(ctx, t, w, name, "two")
}

func TestPrecedenceOfDirFiles(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	const name = "localhost/shop:1"
	low, high := dirFile(save(t, sample(name, "low")), "a"), dirFile(save(t, sample(name, "high")), "a")
	loadDir(ctx, t, w, low, high)
	wantVersion(ctx, t, w, name, "high")
	loadDir(ctx, t, w, low, high)
	wantVersion(ctx, t, w, name, "high")
	loadDir(ctx, t, w, low)
	wantVersion(ctx, t, w, name, "low")
	loadDir(ctx, t, w, low, high)
	wantVersion(ctx, t, w, name, "high")
}

func TestPodWaitsForPendingDirFile(t *testing.T) {
	for _, policy := range []spec.PullPolicy{"", spec.PullIfNotPresent, spec.PullNever} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			f := dirFile(save(t, sample("localhost/shop:latest", "one")), "a")
			f.Pending = true
			w.store.SetFiles([]image.DirFile{f})
			waiting := make(chan string, 1)
			result := make(chan error, 1)
			go func() {
				img, err := w.store.In().Ensure(ctx, "localhost/shop:latest", policy, func(p image.Progress) {
					select {
					case waiting <- p.Archive:
					default:
					}
				})
				if err == nil && (img.Pulled || img.ConfigDigest == "") {
					t.Errorf("image %+v, want that of the archive", img)
				}
				result <- err
			}()
			select {
			case path := <-waiting:
				if path != f.Path {
					t.Errorf("waits for %q, want %q", path, f.Path)
				}
			case err := <-result:
				t.Fatalf("it did not wait: %v", err)
			case <-time.After(timeout):
				t.Fatal("no progress")
			}
			loadDir(ctx, t, w, f)
			f.Pending = false
			w.store.SetFiles([]image.DirFile{f})
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPendingDirFileDoesNotDelayOthers checks that an image that is present is found at once, and that the wait ends if the archive is
// refused.
func TestPendingDirFileDoesNotDelayOthers(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	importAll(ctx, t, w, sample("localhost/present:1", "one"))
	pending := dirFile("/nowhere.tar", "a")
	pending.Pending = true
	w.store.SetFiles([]image.DirFile{pending})
	wantVersion(ctx, t, w, "localhost/present:1", "one")
	missing := make(chan error, 1)
	go func() {
		_, err := w.store.In().Ensure(ctx, "localhost/missing:1", spec.PullNever, nil)
		missing <- err
	}()
	pending.Pending = false
	w.store.SetFiles([]image.DirFile{pending})
	if err := <-missing; err == nil || err.Error() != `Container image "localhost/missing:1" is not present with pull policy of Never` {
		t.Errorf("error %v", err)
	}
}
