package image_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// TestNewest checks which image a name refers to after an archive was replaced, and that looking changes nothing.
func TestNewest(t *testing.T) {
	t.Parallel()
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	ref := reg.host + "/shop:1"
	archive := save(t, sample(ref, "first"))
	list, err := w.store.ImportFile(ctx, archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := list[0].ConfigDigest
	newest := func(ref string, archives ...string) string {
		t.Helper()
		img, ok, err := w.store.In(archives...).Newest(ctx, ref)
		if err != nil || ok != (img.ConfigDigest != "") || ok && !img.FromArchive {
			t.Fatalf("%s: %+v, %v, %v", ref, img, ok, err)
		}
		return img.ConfigDigest
	}
	if got := newest(ref, archive); got != first {
		t.Errorf("%s, want the image that was imported", got)
	}
	if got := newest(ref); got != "" {
		t.Errorf("%s for a pod without archives", got)
	}
	moved := filepath.Join(t.TempDir(), "moved.tar")
	if err := os.Link(archive, moved); err != nil {
		t.Fatal(err)
	}
	if got := newest(ref, moved); got != first {
		t.Errorf("%s in an archive with another name", got)
	}

	if err := os.Rename(save(t, sample(ref, "second")), archive); err != nil {
		t.Fatal(err)
	}
	second := newest(ref, archive)
	if second == first || second == "" {
		t.Errorf("%s in an archive that has changed", second)
	}
	if got := newest(reg.host+"/shop@"+list[0].Target.Digest.String(), archive); got != "" {
		t.Errorf("%s for a name with a digest", got)
	}
	if img, err := w.store.In(archive).Ensure(ctx, ref, spec.PullNever, nil); err != nil || img.ConfigDigest != first {
		t.Errorf("looking has changed the name: %s, %v", img.ConfigDigest, err)
	}
	if list, err = w.store.ImportFile(ctx, archive, nil); err != nil || list[0].ConfigDigest != second {
		t.Fatalf("imported %v, %v, want %s", list, err, second)
	}
	if got := newest(ref, moved, archive); got != second {
		t.Errorf("%s, want the image of the last archive", got)
	}
	if err := os.Remove(archive); err != nil {
		t.Fatal(err)
	}
	if got := newest(ref, archive); got != second {
		t.Errorf("%s after the archive was removed", got)
	}

	for name, text := range map[string]string{"no such file": "", "not an image archive": "damaged"} {
		path := filepath.Join(t.TempDir(), "bad.tar")
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := w.store.In(path).Newest(ctx, ref)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}

	reg.push(t, sample("shop:1", "remote"))
	if _, err := w.store.In().Ensure(ctx, ref, spec.PullAlways, nil); err != nil {
		t.Fatal(err)
	}
	if got := newest(ref); got != "" {
		t.Errorf("%s for a pulled image", got)
	}
	if hand, err := os.Open(moved); err != nil {
		t.Fatal(err)
	} else if _, err = w.store.Import(ctx, hand, true); err != nil {
		t.Fatal(err)
	}
	if got := newest(ref); got != first {
		t.Errorf("%s, want the image that was imported by hand", got)
	}
}

// TestArchiveIsReadOnce: the names of an archive that has changed are remembered for the other containers and the next command. A closed
// file cannot be read again.
func TestArchiveIsReadOnce(t *testing.T) {
	t.Parallel()
	ctx, w := newEnv(t, image.Options{})
	f, err := os.Open(save(t, sample("localhost/a:1", "a"), sample("localhost/b:1", "b")))
	if err != nil {
		t.Fatal(err)
	}
	first, err := w.store.Peek(ctx, f, "one", "localhost/a:1")
	if err != nil || first == "" {
		t.Fatalf("%q, %v", first, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"localhost/a:1": true, "localhost/b:1": true, "localhost/c:1": false} {
		if got, err := w.store.Peek(ctx, f, "one", name); err != nil || (got != "") != want || (got == first) != (name == "localhost/a:1") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := w.store.Peek(ctx, f, "two", "localhost/a:1"); err == nil {
		t.Errorf("%q for an archive that has changed and was not read", got)
	}
}
