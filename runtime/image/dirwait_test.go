package image_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// TestStalledImportDoesNotBlockPods: a pod whose image is not present does not wait for an import without progress, and neither does the
// next.
func TestStalledImportDoesNotBlockPods(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	w.store.SetPatience(50 * time.Millisecond)
	f := dirFile("/mnt/hung.tar", "a")
	f.Pending = true
	for range 2 {
		w.store.SetFiles([]image.DirFile{f}) // as each scan does
		_, err := w.store.In().Ensure(ctx, "localhost/missing:1", spec.PullNever, nil)
		if err == nil || err.Error() != `Container image "localhost/missing:1" is not present with pull policy of Never` {
			t.Errorf("error %v", err)
		}
		w.store.SetPatience(time.Nanosecond)
	}
}
