package image_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/leases"

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
		if _, err := w.store.ImportUsed(ctx, &archive); err != nil {
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
		labels := map[string]string{"containerd.io/gc.expire": time.Now().Add(-time.Second).Format(time.RFC3339), "podstead.io/imported": name}
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
