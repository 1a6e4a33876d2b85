package image_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

func names(list []image.Image) []string {
	var out []string
	for _, img := range list {
		out = append(out, img.Name)
	}
	return out
}

func TestImportLayouts(t *testing.T) {
	short, full := sample("shop:1", "1"), sample("localhost/shop:2", "2")
	oci := func(w io.Writer) error { return ocitar.WriteOCI(w, short, full) }
	for name, layout := range map[string]func(io.Writer) error{
		"oci":    oci,
		"docker": func(w io.Writer) error { return ocitar.WriteDocker(w, short, full) },
		"compressed": func(w io.Writer) error {
			z := gzip.NewWriter(w)
			return errors.Join(oci(z), z.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			var buf bytes.Buffer
			if err := layout(&buf); err != nil {
				t.Fatal(err)
			}
			list, err := w.load(ctx, write(t, buf.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"docker.io/library/shop:1", "localhost/shop:2"}, names(list)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if n := w.leases(ctx, t); n != 0 {
				t.Errorf("%d leases remain after the import", n)
			}
			w.collect(ctx, t)
			img, err := w.scope.Ensure(ctx, "shop:1", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.read(ctx, t, img, "version"); got != "1" || !img.FromArchive || img.Pulled {
				t.Errorf("version %q, %+v", got, img)
			}
			config, err := w.store.Config(ctx, img)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(short.Config, config.Config); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImportErrors(t *testing.T) {
	var good bytes.Buffer
	if err := ocitar.WriteOCI(&good, sample("shop:1", "1")); err != nil {
		t.Fatal(err)
	}
	foreign := sample("shop:1", "1")
	foreign.Architecture = "s390x"
	fifo := filepath.Join(t.TempDir(), "fifo.tar")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, want string }{
		{"missing file", filepath.Join(t.TempDir(), "none.tar"), "no such file"},
		{"directory", t.TempDir(), "not a regular file"},
		{"FIFO without a writer", fifo, "not a regular file"},
		{"empty", write(t, nil), "not an image archive"},
		{"text", write(t, []byte("hello\n")), "not an image archive"},
		{"long text", write(t, bytes.Repeat([]byte("hello\n"), 1000)), "not an image archive in the OCI or Docker layout"},
		{"tar of other files", write(t, tarOf(t, "readme", "hello")), "not an image archive in the OCI or Docker layout"},
		{"truncated", write(t, good.Bytes()[:good.Len()/2]), "truncated"},
		{"without names", save(t, sample("", "1")), "no image in the archive has a name"},
		{"invalid name", save(t, sample("UPPER:1", "1")), `image name "UPPER:1"`},
		{"other platform", save(t, foreign), "linux/s390x"},
		{"without a layer", write(t, without(t, good.Bytes(), 0)), "layer sha256:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			_, err := w.load(ctx, c.file)
			var e *image.Error
			if !errors.As(err, &e) || e.Reason != image.ReasonPull {
				t.Fatalf("error is %#v, want an *Error", err)
			}
			if !strings.Contains(e.Message, c.want) || !strings.Contains(e.Message, c.file) {
				t.Errorf("message %q, want %q and the file", e.Message, c.want)
			}
			w.collect(ctx, t)
			if list, err := w.list(ctx); err != nil || len(list) > 0 || w.blobs(ctx, t) > 0 || w.leases(ctx, t) > 0 {
				t.Errorf("remaining: images %v, %d blobs, %d leases, %v", names(list), w.blobs(ctx, t), w.leases(ctx, t), err)
			}
		})
	}
}

func TestImportFileSkipsUnchangedArchive(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	file := save(t, sample("shop:1", "1"), sample("till:1", "1"))
	load := func() {
		t.Helper()
		list, err := w.load(ctx, file)
		if err != nil || len(list) != 2 {
			t.Fatalf("import: %v, %v", names(list), err)
		}
	}
	load()
	// Access times are not reliable, because most hosts mount with relatime. A second import would update the time of the
	// records.
	updated := func(name string) time.Time {
		t.Helper()
		records, err := w.client.ImageService().List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			if strings.HasSuffix(rec.Name, "/"+name) {
				return rec.UpdatedAt
			}
		}
		t.Fatalf("no record of %s", name)
		return time.Time{}
	}
	first := updated("docker.io/library/shop:1")
	load()
	if again := updated("docker.io/library/shop:1"); again != first {
		t.Error("an unchanged archive was imported again")
	}

	if err := w.store.Forget(ctx, recordIn(t, file, "till:1")); err != nil {
		t.Fatal(err)
	}
	load()
	if _, err := w.scope.Ensure(ctx, "till:1", "Never", nil); err != nil {
		t.Errorf("a removed image was not imported again: %v", err)
	}
}

func TestChangedArchiveIsImported(t *testing.T) {
	plain := func(version string) ocitar.Image {
		img := sample("shop:1", version)
		img.Gzip = false
		return img
	}
	for name, change := range map[string]func(t *testing.T, file string) error{
		"replaced": func(t *testing.T, file string) error { return os.Rename(save(t, plain("2")), file) },
		"rewritten in place, of the same size": func(t *testing.T, file string) error {
			data, err := os.ReadFile(save(t, plain("2")))
			if err != nil {
				return err
			}
			return os.WriteFile(file, data, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			file := save(t, plain("1"))
			for _, version := range []string{"1", "2"} {
				if _, err := w.load(ctx, file); err != nil {
					t.Fatal(err)
				}
				img, err := w.scope.Ensure(ctx, "shop:1", "", nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := w.read(ctx, t, img, "version"); got != version {
					t.Errorf("version %q, want %q", got, version)
				}
				if err := change(t, file); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestImportReplacesDamagedContent(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	file := save(t, sample("shop:1", "1"))
	list, err := w.load(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range w.digests(ctx, t, list[0]) {
		w.damage(t, d)
		// The first attempt detects the damage, the next import repairs it.
		if _, err := w.scope.Ensure(ctx, "shop:1", "Never", nil); err == nil {
			t.Fatalf("an image with damaged %s was accepted", d)
		}
		if _, err := w.load(ctx, file); err != nil {
			t.Fatal(err)
		}
	}
	img, err := w.scope.Ensure(ctx, "shop:1", "Never", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read(ctx, t, img, "version"); got != "1" {
		t.Errorf("version %q, want 1", got)
	}
}

func TestImportIsCancelledWithinFile(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	ctx, cancel := context.WithCancel(ctx)
	img := sample("shop:1", "1")
	img.Gzip = false
	img.Layers[0][1].Data = make([]byte, 1<<20)
	var buf bytes.Buffer
	if err := ocitar.WriteOCI(&buf, img); err != nil {
		t.Fatal(err)
	}
	r := io.MultiReader(io.LimitReader(&buf, 700), cancelReader(cancel), &buf)
	if _, err := w.store.Load(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("import with a cancelled context: %v", err)
	}
}

func TestImportDoesNotContinueAnotherArchive(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	// A killed import leaves unfinished content that is named only by its path in the archive.
	archive := save(t, sample("shop:1", "1"))
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range entries(t, data) {
		cw, err := w.client.ContentStore().Writer(ctx, withRef("tar-"+name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cw.Write([]byte("of another archive")); err != nil {
			t.Fatal(err)
		}
		if err := cw.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.load(ctx, archive); err != nil {
		t.Fatal(err)
	}
	if _, err := w.scope.Ensure(ctx, "shop:1", "Never", nil); err != nil {
		t.Error(err)
	}
}

func TestDigestFindsImageOfArchive(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list, err := w.load(ctx, save(t, sample("shop:1", "1")))
	if err != nil {
		t.Fatal(err)
	}
	d := list[0].Target.Digest.String()
	if img, err := w.scope.Ensure(ctx, "shop@"+d, "Never", nil); err != nil || img.Target.Digest.String() != d {
		t.Errorf("image by digest: %+v, %v", img, err)
	}
	if _, err := w.scope.Ensure(ctx, "till@"+d, "Never", nil); err == nil {
		t.Error("another repository's name found the image")
	}
}

func TestRemoveFreesContentAndLayers(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	archive := save(t, sample("shop:1", "1"))
	if _, err := w.load(ctx, archive); err != nil {
		t.Fatal(err)
	}
	if _, err := w.scope.Ensure(ctx, "shop:1", "", nil); err != nil {
		t.Fatal(err)
	}
	w.collect(ctx, t)
	if b, s := w.blobs(ctx, t), w.snapshots(ctx, t); b != 4 || s != 2 {
		t.Fatalf("the image has %d blobs and %d snapshots, want 4 and 2", b, s)
	}
	remove := func() error { return w.store.Forget(ctx, recordIn(t, archive, "shop:1")) }
	if _, err := w.store.Free(ctx, remove); err != nil {
		t.Fatal(err)
	}
	if b, s := w.blobs(ctx, t), w.snapshots(ctx, t); b != 0 || s != 0 {
		t.Errorf("%d blobs and %d snapshots remain", b, s)
	}
	if _, err := w.store.Free(ctx, remove); !image.IsNotFound(err) {
		t.Errorf("second removal: %v", err)
	}
}

func TestImageWithoutLayers(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	empty := ocitar.Image{Name: "empty:1", Config: ocispec.ImageConfig{Cmd: []string{"/x"}}}
	if _, err := w.load(ctx, save(t, empty)); err != nil {
		t.Fatal(err)
	}
	if img, err := w.scope.Ensure(ctx, "empty:1", "", nil); err != nil || img.Snapshot != "" {
		t.Errorf("%+v, %v", img, err)
	}
}

// TestImportWhileRemoved imports an image whose record is removed between the attempts to create and to update it.
func TestImportWhileRemoved(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	var buf bytes.Buffer
	if err := ocitar.WriteOCI(&buf, sample("localhost/shop:1", "1")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Import(ctx, bytes.NewReader(buf.Bytes()), true); err != nil {
		t.Fatal(err)
	}
	removals := 0
	remove := func(ctx context.Context, name string) error {
		if removals++; removals > 2 {
			return nil
		}
		return w.client.ImageService().Delete(ctx, name)
	}
	w.update.Store(&remove)
	list, err := w.store.Import(ctx, &buf, true)
	if err != nil || removals == 0 || !slices.Equal(names(list), []string{"localhost/shop:1"}) {
		t.Errorf("imported %q after %d removals: %v", names(list), removals, err)
	}
}
