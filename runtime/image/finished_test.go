package image_test

import (
	"context"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// interrupt is work that was killed after it had written content of an image, and something else if more is not empty.
func (w *env) interrupt(ctx context.Context, t *testing.T, work string, img image.Image, more string) {
	t.Helper()
	w.interruptAs(ctx, t, work, work, img, more)
}

// interruptAs is [env.interrupt] with the ID of the lease.
func (w *env) interruptAs(ctx context.Context, t *testing.T, id, work string, img image.Image, more string) {
	t.Helper()
	lm := w.client.LeasesService()
	l, err := lm.Create(ctx, leases.WithID(id), leases.WithLabel("podstead.io/image-work", work))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []digest.Digest{img.Target.Digest, digest.Digest(img.ConfigDigest)} {
		if err := lm.AddResource(ctx, l, leases.Resource{ID: d.String(), Type: "content"}); err != nil {
			t.Fatal(err)
		}
	}
	ctx = leases.WithLease(ctx, l.ID)
	switch more {
	case "content":
		d := ocispec.Descriptor{Digest: digest.FromString(more), Size: int64(len(more))}
		if err := content.WriteBlob(ctx, w.client.ContentStore(), more, strings.NewReader(more), d); err != nil {
			t.Fatal(err)
		}
	case "ingest":
		open, err := w.client.ContentStore().Writer(ctx, content.WithRef(more))
		if err == nil {
			err = open.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFinishedWorkIsDeleted: a daemon that was killed between the end of its work and the deletion of the lease leaves nothing that holds
// removed images. Work that the next daemon can resume keeps its lease, and so do images that are kept.
func TestFinishedWorkIsDeleted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		work     func(image.Image) string
		unpacked bool
		more     string
		want     int
	}{
		{"pull of an image that is complete", func(img image.Image) string { return "pull " + img.Name }, true, "", 0},
		{"pull of a newer image that has a layer", func(img image.Image) string { return "pull " + img.Name }, true, "content", 1},
		{"pull of a newer image that has a part of a layer", func(img image.Image) string { return "pull " + img.Name }, true, "ingest", 1},
		{"pull of an image that is not unpacked", func(img image.Image) string { return "pull " + img.Name }, false, "", 1},
		{"pull of an image that is not there", func(image.Image) string { return "pull docker.io/library/other:1" }, true, "", 1},
		{
			"unpacking of an image that is unpacked", func(img image.Image) string { return "unpack " + img.Target.Digest.String() }, true,
			"", 0,
		},
		{
			"unpacking of an image that is not unpacked", func(img image.Image) string { return "unpack " + img.Target.Digest.String() },
			false, "", 1,
		},
		{
			"unpacking of an image that is not there", func(image.Image) string { return "unpack " + digest.FromString("other").String() },
			true, "", 0,
		},
		{"import", func(image.Image) string { return "import 0123456789abcdef" }, false, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			list, err := w.load(ctx, save(t, sample("shop:1", "1")))
			if err != nil {
				t.Fatal(err)
			}
			img := list[0]
			if _, err := w.client.ImageService().Create(ctx, images.Image{Name: img.Name, Target: img.Target}); err != nil { // as if pulled
				t.Fatal(err)
			}
			if test.unpacked {
				if _, err := w.scope.Ensure(ctx, "shop:1", spec.PullNever, nil); err != nil {
					t.Fatal(err)
				}
			}
			w.interrupt(ctx, t, test.work(img), img, test.more)
			if _, err := w.store.Keep(ctx, "web", img.ConfigDigest); err != nil {
				t.Fatal(err)
			}
			if err := w.store.DeleteLeases(ctx); err != nil {
				t.Fatal(err)
			}
			if n := w.leases(ctx, t) - 1; n != test.want {
				t.Errorf("%d leases of work, want %d", n, test.want)
			}
		})
	}
}

// TestRequestWithoutImageIsDeleted: a daemon that was killed during the first pull of a person, or during a removal, leaves a request for
// an image that is not there. A pod that pulls the image later does not make it one that a person has requested.
func TestRequestWithoutImageIsDeleted(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	importAll(ctx, t, w, sample("shop:1", "1"), sample("till:1", "2"))
	if err := w.client.ImageService().Delete(ctx, "docker.io/library/till:1"); err != nil {
		t.Fatal(err)
	}
	if err := w.store.DeleteLeases(ctx); err != nil {
		t.Fatal(err)
	}
	w.wantClaims(ctx, t, "docker.io/library/shop:1", "person")
	w.wantClaims(ctx, t, "docker.io/library/till:1")
}

// TestFailedPullOfPresentImage: a pull that fails while its image is present leaves nothing that would hold the image after its removal,
// and keeps what is part of a newer one.
func TestFailedPullOfPresentImage(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]int{"": 0, "content": 1, "ingest": 1} {
		ctx, w := newEnv(t, image.Options{})
		reg := newRegistry(t)
		reg.push(t, sample("shop:1", "1"))
		name := reg.host + "/shop:1"
		img, err := w.scope.Ensure(ctx, name, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		work := "pull " + name
		w.interruptAs(ctx, t, "podstead-image-"+digest.FromString(work).Encoded(), work, img, more)
		reg.intercept(hangUp)
		if _, err := w.scope.Ensure(ctx, name, spec.PullAlways, nil); err == nil {
			t.Fatal("the pull succeeded")
		}
		if n := w.leases(ctx, t); n != want {
			t.Errorf("%q: %d leases, want %d", more, n, want)
		}
		if err := w.store.Forget(ctx, name); err != nil {
			t.Fatal(err)
		}
		if n := w.leases(ctx, t); n != 0 {
			t.Errorf("%q: %d leases of an image that was removed, want none: they keep the start of its newer version", more, n)
		}
	}
}
