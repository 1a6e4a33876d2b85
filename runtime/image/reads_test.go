package image_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/podstead/podstead/runtime/image"
)

// TestImportReportsProgress checks that all callers that wait for one import report its progress.
func TestImportReportsProgress(t *testing.T) {
	t.Parallel()
	ctx, w := newEnv(t, image.Options{})
	file := save(t, sample("shop:1", "1"))
	fi, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	proceed := make(chan struct{})
	write := func(ctx context.Context) error {
		select {
		case <-proceed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.write.Store(&write)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var imports, reports sync.WaitGroup
	for range 3 {
		reports.Add(1)
		first := sync.OnceFunc(reports.Done)
		imports.Go(func() {
			defer first()
			returned, last := false, int64(0)
			list, err := w.store.ImportFile(ctx, file, func(p image.Progress) {
				if p.TotalBytes != fi.Size() || p.Bytes < 0 || p.Bytes > fi.Size() || returned {
					t.Errorf("progress %+v, returned: %v", p, returned)
				}
				if last = p.Bytes; last > 0 {
					first()
				}
			})
			if returned = true; err != nil || len(list) != 1 || last != fi.Size() {
				t.Errorf("import: %v, %v, %d of %d bytes", names(list), err, last, fi.Size())
			}
		})
	}
	reports.Wait()
	close(proceed)
	imports.Wait()
	if w.store.Importing() > 0 {
		t.Error("the import is over, but has a progress")
	}
}

// TestCancelledImportHasNoProgress checks that an import that was cancelled is not reported any longer.
func TestCancelledImportHasNoProgress(t *testing.T) {
	t.Parallel()
	ctx, w := newEnv(t, image.Options{})
	write := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	w.write.Store(&write)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := w.store.ImportFile(ctx, save(t, sample("shop:1", "1")), func(image.Progress) { cancel() }); err == nil ||
		ctx.Err() != context.Canceled {
		t.Errorf("error %v, %v", err, ctx.Err())
	}
	if w.store.Importing() > 0 {
		t.Error("the import is over, but has a progress")
	}
}
