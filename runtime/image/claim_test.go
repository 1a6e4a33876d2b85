package image_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

// TestImportForPodsProtects: an image that is imported for pods is protected for a while, also one that is known already.
func TestImportForPodsProtects(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	const name = "localhost/shop:1"
	protected := func(when string, want bool) {
		t.Helper()
		claims, err := w.store.Claims(ctx)
		is := slices.ContainsFunc(claims, func(c image.Claim) bool {
			return c.By == image.Import && c.Image == name && time.Now().Before(c.Until)
		})
		if err != nil || is != want {
			t.Errorf("%s: claims %v, %v", when, claims, err)
		}
	}
	importUsed := func() {
		t.Helper()
		var archive bytes.Buffer
		if err := ocitar.WriteOCI(&archive, sample(name, "one")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Import(ctx, &archive, false); err != nil {
			t.Fatal(err)
		}
	}
	importUsed()
	protected("after the import", true)
	w.collect(ctx, t)
	protected("after a garbage collection", true)
	lm := w.client.LeasesService()
	expire := func() {
		t.Helper()
		list, err := lm.List(ctx, `labels."podstead.io/imported"`)
		if err != nil || len(list) != 1 {
			t.Fatalf("leases %v, %v", list, err)
		}
		if err := lm.Delete(ctx, list[0]); err != nil {
			t.Fatal(err)
		}
		before := time.Now().Add(-time.Second).Format(time.RFC3339)
		labels := map[string]string{"containerd.io/gc.expire": before, "podstead.io/imported": name}
		if _, err := lm.Create(ctx, leases.WithID(list[0].ID), leases.WithLabels(labels)); err != nil {
			t.Fatal(err)
		}
	}
	expire()
	protected("after the time", false)
	importUsed()
	protected("after another import", true)
	if err := w.store.Forget(ctx, name); err != nil {
		t.Fatal(err)
	}
	protected("after its removal by name", false)
	importAll(ctx, t, w, sample(name, "one"))
	protected("after an import by hand", false)
	w.wantClaims(ctx, t, name, "person")
}

// TestFormatOfLeases: leases of these IDs and labels keep images. They are a format: an earlier version has written them, and finds them
// after a downgrade.
func TestFormatOfLeases(t *testing.T) {
	const name = "localhost/shop:1"
	sum := digest.FromString(name).Encoded()
	want := map[string]map[string]string{ // labels by ID; those without a value have any
		"podstead-by-hand-" + sum:  {"podstead.io/by-hand": name},
		"podstead-imported-" + sum: {"podstead.io/imported": name, "containerd.io/gc.expire": ""},
		"podstead-replaced-" + sum: {"podstead.io/replaced": name, "podstead.io/replacement": "", "containerd.io/gc.expire": ""},
		"podstead-kept-images-web": {"podstead.io/kept-images": "web"},
	}
	ctx, w := newEnv(t, image.Options{})
	before := time.Now().Add(-time.Second)
	first := importAll(ctx, t, w, sample(name, "first"))[0]
	if _, err := w.store.Keep(ctx, "web", first.ConfigDigest); err != nil {
		t.Fatal(err)
	}
	importUsed(ctx, t, w, sample(name, "second"))
	lm := w.client.LeasesService()
	list, err := lm.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]string{}
	for _, l := range list {
		got[l.ID] = maps.Clone(l.Labels)
		for label := range l.Labels {
			if value, known := want[l.ID][label]; known && value == "" {
				got[l.ID][label] = ""
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("leases (-want +got):\n%s", diff)
	}

	// Another store reads them.
	again := image.New(w.client, image.Options{Collect: w.garbage})
	if err := again.DeleteLeases(ctx); err != nil {
		t.Fatal(err)
	}
	claims, err := again.Claims(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, c := range claims {
		by = append(by, fmt.Sprintf("%s %q %s %t", c.By, c.Who, c.Image, c.Until.After(before.Add(time.Hour))))
	}
	slices.Sort(by)
	if diff := cmp.Diff([]string{
		`generation "web" ` + first.ConfigDigest + " false", `import "" ` + name + " true", `person "" ` + name + " false",
	}, by); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if restored, err := again.Restore(ctx, name, before); err != nil || !restored {
		t.Errorf("restored %t, %v", restored, err)
	}
}
