package image_test

import (
	"errors"
	"testing"

	"github.com/podstead/podstead/runtime/image"
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
