package image_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/ocitar"
)

// importAll imports images by hand.
func importAll(ctx context.Context, t *testing.T, w *env, images ...ocitar.Image) []image.Image {
	t.Helper()
	var buf bytes.Buffer
	if err := ocitar.WriteOCI(&buf, images...); err != nil {
		t.Fatal(err)
	}
	list, err := w.store.Import(ctx, &buf, true)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func catalog(ctx context.Context, t *testing.T, w *env) map[string]image.Entry {
	t.Helper()
	list, err := w.store.Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]image.Entry{}
	for _, e := range list {
		entries[e.Record] = e
	}
	return entries
}

func TestImportByHand(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list := importAll(ctx, t, w, sample("shop:1", "1"), sample("example.org/shop:latest", "2"))
	if len(list) != 2 || list[0].Name != "docker.io/library/shop:1" || list[0].CreatedAt.IsZero() {
		t.Fatalf("imported %+v", list)
	}
	entries := catalog(ctx, t, w)
	e := entries["docker.io/library/shop:1"]
	w.wantClaims(ctx, t, e.Record, "person")
	if !e.FromArchive || e.Scoped || e.Foreign || e.Damaged || e.Platform == "" || e.ConfigDigest != list[0].ConfigDigest {
		t.Errorf("entry %+v", e)
	}
	// All pods see it, and the tag latest requires no registry.
	img, err := w.store.In().Ensure(ctx, "example.org/shop", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read(ctx, t, img, "version"); got != "2" {
		t.Errorf("version %q", got)
	}
	// A second import replaces the name, and nothing else.
	importAll(ctx, t, w, sample("shop:1", "3"))
	img, err = w.store.In().Ensure(ctx, "shop:1", spec.PullNever, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read(ctx, t, img, "version"); got != "3" || len(catalog(ctx, t, w)) != 2 {
		t.Errorf("version %q of %d images", got, len(catalog(ctx, t, w)))
	}
	// The start of a daemon deletes no mark.
	w.wantLeases(ctx, t, 2)
}

func TestImportByHandFails(t *testing.T) {
	var good bytes.Buffer
	if err := ocitar.WriteOCI(&good, sample("shop:1", "1")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r    io.Reader
		want string
	}{
		"text":      {strings.NewReader(strings.Repeat("no archive\n", 1000)), "not an image archive"},
		"truncated": {bytes.NewReader(good.Bytes()[:good.Len()/2]), "truncated"},
		"reader":    {io.MultiReader(bytes.NewReader(good.Bytes()[:1000]), failing{}), "link is down"},
		"another platform": {func() io.Reader {
			img := sample("shop:1", "1")
			img.Architecture = "s390x"
			var buf bytes.Buffer
			if err := ocitar.WriteOCI(&buf, img); err != nil {
				t.Fatal(err)
			}
			return &buf
		}(), "platform"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			_, err := w.store.Import(ctx, c.r, true)
			wantError(t, err, image.ReasonPull, c.want)
			w.collect(ctx, t)
			if n := len(catalog(ctx, t, w)); n > 0 || w.blobs(ctx, t) > 0 || w.leases(ctx, t) > 0 {
				t.Errorf("%d images, %d blobs and %d leases are left", n, w.blobs(ctx, t), w.leases(ctx, t))
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("link is down") }

// TestPodPullKeepsMark: a pull for a pod replaces the record of the image, and not that a person requested it.
func TestPodPullKeepsMark(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	ref := reg.host + "/shop:1"
	img, err := w.store.PullByHand(ctx, ref, image.Platform{}, spec.PullAlways, nil)
	if err != nil || !img.Pulled {
		t.Fatalf("%+v, %v", img, err)
	}
	reg.push(t, sample("shop:1", "2"))
	if _, err := w.store.In().Ensure(ctx, ref, spec.PullAlways, nil); err != nil {
		t.Fatal(err)
	}
	w.wantClaims(ctx, t, ref, "person")
	if e := catalog(ctx, t, w)[ref]; e.Name != ref || e.FromArchive {
		t.Errorf("entry %+v", e)
	}
	if img, err = w.store.PullByHand(ctx, ref, image.Platform{}, spec.PullIfNotPresent, nil); err != nil || img.Pulled {
		t.Errorf("pulled %t, %v", img.Pulled, err)
	}
}

func TestPullByHandFails(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	_, err := w.store.PullByHand(ctx, reg.host+"/none:1", image.Platform{}, spec.PullAlways, nil)
	wantError(t, err, image.ReasonPull, "not found")
	if !image.IsNotFound(err) {
		t.Errorf("%v is not found as missing", err)
	}
	if n := w.leases(ctx, t); n > 0 {
		t.Errorf("%d leases are left", n)
	}
	if _, err := w.store.PullByHand(ctx, "UPPER", image.Platform{}, spec.PullAlways, nil); err == nil {
		t.Error("an invalid name was pulled")
	}
}

// TestForeignPlatform: an image for another platform is invisible to pods, and can be exported.
func TestForeignPlatform(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	foreign := sample("shop:1", "foreign")
	foreign.Architecture = "s390x"
	reg.push(t, foreign)
	ref := reg.host + "/shop:1"
	p, err := w.store.ParsePlatform("linux/s390x")
	if err != nil {
		t.Fatal(err)
	}
	var reports int
	img, err := w.store.PullByHand(ctx, ref, p, spec.PullAlways, func(image.Progress) { reports++ })
	if err != nil || !img.Pulled || reports == 0 {
		t.Fatalf("%+v, %d reports, %v", img, reports, err)
	}
	again, err := w.store.PullByHand(ctx, ref, p, spec.PullIfNotPresent, nil)
	if err != nil || again.Pulled || again.ConfigDigest != img.ConfigDigest {
		t.Errorf("again: %+v, %v", again, err)
	}
	w.wantClaims(ctx, t, p.Record(ref), "person")
	e := catalog(ctx, t, w)[p.Record(ref)]
	if !e.Foreign || e.Platform != "linux/s390x" || e.Name != ref || e.Damaged {
		t.Errorf("entry %+v", e)
	}
	if _, err := w.store.In().Ensure(ctx, ref, spec.PullNever, nil); err == nil {
		t.Error("a pod sees the image")
	}
	var buf bytes.Buffer
	if err := w.store.Export(ctx, &buf, e.Record); err != nil {
		t.Fatal(err)
	}
	if names := entries(t, buf.Bytes()); len(names) < 6 {
		t.Errorf("the archive has only %q", names)
	}
	if err := w.store.Forget(ctx, e.Record); err != nil {
		t.Fatal(err)
	}
	w.collect(ctx, t)
	if w.blobs(ctx, t) > 0 || w.leases(ctx, t) > 0 {
		t.Errorf("%d blobs and %d leases are left", w.blobs(ctx, t), w.leases(ctx, t))
	}
	other, err := w.store.ParsePlatform("linux/riscv64")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.PullByHand(ctx, ref, other, spec.PullAlways, nil); err == nil || !image.IsNotFound(err) {
		t.Errorf("pull for a platform that the image does not have: %v", err)
	}
	if _, err := w.store.ParsePlatform("a/b/c/d"); err == nil {
		t.Error("an invalid platform was parsed")
	}
}

// TestExport: what is exported can be imported again, and has the manifest of docker save.
func TestExport(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list := importAll(ctx, t, w, sample("shop:1", "1"), sample("other:1", "2"))
	var buf bytes.Buffer
	if err := w.store.Export(ctx, &buf, list[0].Name, list[1].Name); err != nil {
		t.Fatal(err)
	}
	if names := entries(t, buf.Bytes()); !cmp.Equal(count(names, "manifest.json", "oci-layout", "index.json"), 3) {
		t.Errorf("the archive has %q", names)
	}
	if !bytes.Contains(buf.Bytes(), []byte(`"RepoTags":["shop:1"],`)) {
		t.Error("manifest.json has no tag")
	}
	leases := w.leases(ctx, t)
	other, second := newEnv(t, image.Options{})
	again, err := second.store.Import(other, &buf, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != 2 || again[0].ConfigDigest != list[0].ConfigDigest || again[0].Name != list[0].Name {
		t.Errorf("imported again: %+v", again)
	}
	if leases != 2 { // the marks
		t.Errorf("%d leases after the export", leases)
	}
	if err := w.store.Export(ctx, failingWriter{}, list[0].Name); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("export to a full disk: %v", err)
	}
	w.damage(t, w.digests(ctx, t, list[0])[0])
	if err := w.client.ContentStore().Delete(ctx, w.digests(ctx, t, list[0])[0]); err != nil {
		t.Fatal(err)
	}
	var none bytes.Buffer
	if err := w.store.Export(ctx, &none, list[0].Name); err == nil || none.Len() > 0 {
		t.Errorf("export without a layer: %v, %d bytes", err, none.Len())
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func count(names []string, want ...string) (n int) {
	for _, name := range names {
		for _, w := range want {
			if name == w {
				n++
			}
		}
	}
	return n
}

func TestFreeMeasures(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	importAll(ctx, t, w, large("shop:1", 1<<20), sample("other:1", "2"))
	freed, err := w.store.Free(ctx, func() error { return w.store.Forget(ctx, "docker.io/library/shop:1") })
	if err != nil || freed < 1<<20 || freed > 2<<20 {
		t.Errorf("freed %d bytes, %v", freed, err)
	}
	failed := errors.New("in use")
	if _, err := w.store.Free(ctx, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if err := w.store.Forget(ctx, "docker.io/library/shop:1"); !image.IsNotFound(err) {
		t.Errorf("error for a removed image: %v", err)
	}
}

func TestDetail(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list := importAll(ctx, t, w, sample("shop:1", "1"))
	if _, err := w.store.Keep(ctx, "web", list[0].ConfigDigest); err != nil {
		t.Fatal(err)
	}
	d, err := w.store.Detail(ctx, list[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	w.wantClaims(ctx, t, d.Record, "generation web", "person")
	if d.Config.Config.User != "nobody" || len(d.Layers) != 2 || !cmp.Equal(d.Platforms, []string{d.Platform}) {
		t.Errorf("detail %+v", d)
	}
	if _, err := w.store.Detail(ctx, "none"); !image.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
	w.damage(t, list[0].Target.Digest)
	if e := catalog(ctx, t, w)[list[0].Name]; !e.Damaged {
		t.Errorf("entry of a damaged image: %+v", e)
	}
}

func TestArchiveImagesAreScoped(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	archive := save(t, sample("shop:1", "1"))
	if _, err := w.load(ctx, archive); err != nil {
		t.Fatal(err)
	}
	record, err := image.ArchiveRecord(archive, "docker.io/library/shop:1")
	if err != nil {
		t.Fatal(err)
	}
	w.wantClaims(ctx, t, record)
	if e := catalog(ctx, t, w)[record]; !e.Scoped || e.Name != "docker.io/library/shop:1" {
		t.Errorf("entry %+v", e)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"nginx": true, "nginx:1": true, "library/nginx": true, "docker.io/nginx": false, "localhost/nginx": false, "host:5000/nginx": false,
	} {
		if got := image.IsShort(name); got != want {
			t.Errorf("IsShort(%q) is %t", name, got)
		}
	}
	if _, err := image.FullName("UPPER"); err == nil {
		t.Error("an invalid name was accepted")
	}
}

// TestConcurrentImages runs imports, removals and starts of the same image at the same time: none of them fails other than with "not
// found", and the image is complete in the end.
func TestConcurrentImages(t *testing.T) {
	t.Parallel()
	ctx, w := newEnv(t, image.Options{})
	data, err := os.ReadFile(save(t, sample("shop:1", "1")))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				if _, err := w.store.Import(ctx, bytes.NewReader(data), true); err != nil {
					t.Errorf("import: %v", err)
				}
			}
		})
		all.Go(func() {
			for range 5 {
				if _, err := w.store.Free(ctx, func() error { return w.store.Forget(ctx, "docker.io/library/shop:1") }); err != nil &&
					!image.IsNotFound(err) {
					t.Errorf("remove: %v", err)
				}
				if _, err := w.store.Catalog(ctx); err != nil {
					t.Errorf("catalog: %v", err)
				}
			}
		})
	}
	all.Wait()
	if _, err := w.store.Import(ctx, bytes.NewReader(data), true); err != nil {
		t.Fatal(err)
	}
	img, err := w.store.In().Ensure(ctx, "shop:1", spec.PullNever, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read(ctx, t, img, "version"); got != "1" {
		t.Errorf("version %q", got)
	}
}
