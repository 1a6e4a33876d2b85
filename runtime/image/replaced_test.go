package image_test

import (
	"bytes"
	"context"
	"maps"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/ocitar"
)

// importUsed imports an image as a bundle does.
func importUsed(ctx context.Context, t *testing.T, w *env, img ocitar.Image) image.Image {
	t.Helper()
	var archive bytes.Buffer
	if err := ocitar.WriteOCI(&archive, img); err != nil {
		t.Fatal(err)
	}
	list, err := w.store.Import(ctx, &archive, false)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// TestRestoreReplaced: an image that a bundle has replaced is kept, although nothing else refers to it, and gets its name back.
func TestRestoreReplaced(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	first := importAll(ctx, t, w, sample("shop:1", "first"))[0]
	rec, err := w.client.ImageService().Get(ctx, first.Name)
	if err != nil {
		t.Fatal(err)
	}
	rec.Labels["podstead.io/image-file"] = "/usr/lib/images/shop.tar" // as if an image directory had named it
	if rec, err = w.client.ImageService().Update(ctx, rec, "labels"); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	second := importUsed(ctx, t, w, sample("shop:1", "second"))
	w.wantLeases(ctx, t, 3) // of the person, of the import, and of what it has replaced
	w.collect(ctx, t)
	if restored, err := w.store.Restore(ctx, first.Name, time.Now()); err != nil || restored {
		t.Errorf("replaced before that time: %t, %v", restored, err)
	}
	restored, err := w.store.Restore(ctx, first.Name, before)
	if err != nil || !restored {
		t.Fatal(restored, err)
	}
	img, err := w.store.In().Ensure(ctx, first.Name, spec.PullNever, nil)
	if err != nil || img.Target.Digest != first.Target.Digest {
		t.Fatalf("%+v, %v; want %s", img, err, first.Target.Digest)
	}
	if got := w.read(ctx, t, img, "version"); got != "first" {
		t.Errorf("version %q", got)
	}
	if is, err := w.client.ImageService().Get(ctx, first.Name); err != nil || !maps.Equal(is.Labels, rec.Labels) {
		t.Errorf("labels %v, want %v; %v", is.Labels, rec.Labels, err)
	}
	w.wantClaims(ctx, t, first.Name, "import", "person")
	if restored, err := w.store.Restore(ctx, first.Name, before); err != nil || restored {
		t.Errorf("again: %t, %v", restored, err)
	}

	// A name that another has changed or removed since is kept so.
	importUsed(ctx, t, w, sample("shop:1", "second"))
	third := importAll(ctx, t, w, sample("shop:1", "third"))[0]
	if restored, err := w.store.Restore(ctx, first.Name, before); err != nil || restored {
		t.Errorf("changed since: %t, %v", restored, err)
	}
	if e := catalog(ctx, t, w)[first.Name]; e.Target.Digest != third.Target.Digest {
		t.Errorf("target %s, want %s", e.Target.Digest, third.Target.Digest)
	}
	importUsed(ctx, t, w, sample("shop:1", "second"))
	if err := w.store.Forget(ctx, first.Name); err != nil {
		t.Fatal(err)
	}
	if restored, err := w.store.Restore(ctx, first.Name, before); err != nil || restored {
		t.Errorf("removed since: %t, %v", restored, err)
	}
	w.collect(ctx, t)
	if n := w.leases(ctx, t); n > 0 {
		t.Errorf("%d leases remain", n)
	}

	// An import of the same image, and of a new one, replaces nothing.
	importUsed(ctx, t, w, sample("shop:1", "second"))
	again := importUsed(ctx, t, w, sample("shop:1", "second"))
	if again.Target.Digest != second.Target.Digest {
		t.Fatal("the image differs")
	}
	if restored, err := w.store.Restore(ctx, first.Name, before); err != nil || restored {
		t.Errorf("nothing was replaced: %t, %v", restored, err)
	}
}
