package image_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// TestForgetUnless: records that something has begun to use are restored with their content and the note that a person requested them.
func TestForgetUnless(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	const name = "localhost/shop:1"
	importAll(ctx, t, w, sample(name, "one"))
	failed := errors.New("the pods are not known")
	for _, c := range []struct {
		used bool
		err  error
	}{{true, nil}, {false, failed}} {
		removed, err := w.store.ForgetUnless(ctx, []string{name, "localhost/unknown:1"}, func() (bool, error) {
			if list := catalog(ctx, t, w); len(list) != 0 {
				t.Errorf("entries %v, want none before the question", list)
			}
			w.collect(ctx, t)
			return c.used, c.err
		})
		if removed || !errors.Is(err, c.err) {
			t.Errorf("removed %t, %v", removed, err)
		}
		wantVersion(ctx, t, w, name, "one")
		w.wantClaims(ctx, t, name, "person")
		if e := catalog(ctx, t, w)[name]; e.Name != name || e.Damaged {
			t.Errorf("entry %+v, want that of before", e)
		}
	}
	removed, err := w.store.ForgetUnless(ctx, []string{name}, func() (bool, error) { return false, nil })
	if !removed || err != nil {
		t.Errorf("removed %t, %v", removed, err)
	}
	w.collect(ctx, t)
	if n := w.blobs(ctx, t); n != 0 {
		t.Errorf("%d blobs remain", n)
	}
}

// TestForgetUnlessKeepsLaterClaims: what is claimed while records are removed is seen, and stays claimed.
func TestForgetUnlessKeepsLaterClaims(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	const name = "localhost/shop:1"
	importAll(ctx, t, w, sample(name, "one"))
	importedFor := func() bool {
		claims, err := w.store.Claims(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(claims, func(c image.Claim) bool { return c.By == image.Import && c.Image == name })
	}
	for _, used := range []bool{true, false} {
		removed, err := w.store.ForgetUnless(ctx, []string{name}, func() (bool, error) {
			importUsed(ctx, t, w, sample(name, "two"))
			if !importedFor() {
				t.Error("the claim of the bundle is not seen")
			}
			return used, nil
		})
		if removed == used || err != nil || !importedFor() {
			t.Errorf("used %t: removed %t, %v, claimed %t", used, removed, err, importedFor())
		}
		wantVersion(ctx, t, w, name, "two") // the name of the bundle
	}
	w.wantClaims(ctx, t, name, "import") // the person has requested another image, which was removed
}

// TestForgetUnlessPulledAgain: an image that a person pulls or imports again while its record is removed stays, and is the person's.
func TestForgetUnlessPulledAgain(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	name := reg.host + "/shop:1"
	pull := func() {
		if _, err := w.store.PullByHand(ctx, name, image.Platform{}, spec.PullIfNotPresent, nil); err != nil {
			t.Error(err)
		}
	}
	pull()
	for what, again := range map[string]func(){"pulled": pull, "imported": func() { importAll(ctx, t, w, sample(name, "one")) }} {
		removed, err := w.store.ForgetUnless(ctx, []string{name}, func() (bool, error) {
			again()
			return false, nil
		})
		if removed || err != nil {
			t.Errorf("%s: removed %t, %v", what, removed, err)
		}
		wantVersion(ctx, t, w, name, "one")
		w.wantClaims(ctx, t, name, "person")
	}
}

// TestKeptByHand: an image that a removal takes away between its pull and the claim of the person who has pulled it is pulled again.
func TestKeptByHand(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	name := reg.host + "/shop:1"
	pull := func() error {
		_, err := w.store.PullByHand(ctx, name, image.Platform{}, spec.PullIfNotPresent, nil)
		return err
	}
	pulls := 0
	removedAfter := func(removals int) func() error {
		return func() error {
			if err := pull(); err != nil {
				return err
			}
			if pulls++; pulls > removals {
				return nil
			}
			_, err := w.store.ForgetUnless(ctx, []string{name}, func() (bool, error) { return false, nil })
			return err
		}
	}
	if err := w.store.KeepByHand(ctx, name, removedAfter(1)); err != nil || pulls != 2 {
		t.Errorf("%d pulls, %v; want 2", pulls, err)
	}
	wantVersion(ctx, t, w, name, "one")
	w.wantClaims(ctx, t, name, "person")
	if err := w.store.KeepByHand(ctx, name, removedAfter(100)); err != nil {
		t.Error(err)
	}
	w.wantClaims(ctx, t, name) // each time somebody has removed it
}
