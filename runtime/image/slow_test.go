package image_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

// drip sends a byte of each blob from time to time, without end.
func drip(w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.URL.Path, "/blobs/") {
		return false
	}
	w.Header().Set("Content-Length", "1000000")
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := w.Write([]byte{0}); err != nil {
			return true
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return true
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return true
		}
	}
}

// TestSlowRegistriesBlockNobody checks that pulls without progress do not keep other images from being pulled or imported.
func TestSlowRegistriesBlockNobody(t *testing.T) {
	t.Parallel()
	// Within the timeout, the slow pulls lose their slots (after 7.5 s), and do not fail yet (after 45 s).
	ctx, w := newEnv(t, image.Options{MaxParallelPulls: 2, RateWindow: 45 * time.Second})
	slow, fast := newRegistry(t), newRegistry(t)
	reached := make(chan struct{}, 100)
	slow.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			reached <- struct{}{}
		}
		return drip(w, r)
	})
	fast.push(t, sample("shop:1", "1"))
	slowCtx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 2)
	for i := range 2 {
		slow.push(t, sample(fmt.Sprintf("shop%d:1", i), fmt.Sprint(i)))
		go func() {
			_, err := w.store.In().Ensure(slowCtx, fmt.Sprintf("%s/shop%d:1", slow.host, i), "", nil)
			ended <- err
		}()
	}
	for range 2 { // both have slots
		<-reached
	}
	if _, err := w.store.ImportFile(ctx, save(t, sample("till:1", "1")), nil); err != nil {
		t.Error(err)
	}
	quick, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	if _, err := w.store.In().Ensure(quick, fast.host+"/shop:1", "", nil); err != nil {
		t.Errorf("pull beside two slow ones: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a pull that was cancelled succeeded")
		}
	}
}

// TestTooSlowRegistryFails checks that a registry that sends a byte from time to time is given up.
func TestTooSlowRegistryFails(t *testing.T) {
	t.Parallel()
	ctx, w := newEnv(t, image.Options{RateWindow: 500 * time.Millisecond})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	reg.intercept(drip)
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	_, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil)
	wantError(t, err, image.ReasonPull, "too slow")
}

// TestDeepIndexesBlockNobody checks that archives with deep indexes cost little to refuse, and that other images are imported and pulled
// while such archives are read slowly and have all slots.
func TestDeepIndexesBlockNobody(t *testing.T) {
	t.Parallel()
	// An import without progress loses its slot after a second.
	ctx, w := newEnv(t, image.Options{RateWindow: 6 * time.Second})
	const deep, maxDepth = 2, 4
	type isDeep struct{}
	opened, release := make(chan struct{}, 1000), make(chan struct{})
	open := func(ctx context.Context) error {
		if ctx.Value(isDeep{}) != nil {
			opened <- struct{}{}
			<-release
		}
		return nil
	}
	w.open.Store(&open)
	ended := make(chan error, deep)
	for range deep {
		var archive bytes.Buffer
		if err := ocitar.Nested(100).Write(&archive, "deep:1"); err != nil {
			t.Fatal(err)
		}
		file := write(t, archive.Bytes())
		go func() {
			_, err := w.store.ImportFile(context.WithValue(ctx, isDeep{}, true), file, nil)
			ended <- err
		}()
	}
	for range deep { // all have slots
		<-opened
	}
	quick, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	if _, err := w.store.ImportFile(quick, save(t, sample("till:1", "1")), nil); err != nil {
		t.Errorf("import beside deep indexes: %v", err)
	}
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	if _, err := w.store.In().Ensure(quick, reg.host+"/shop:1", "", nil); err != nil {
		t.Errorf("pull beside deep indexes: %v", err)
	}
	close(release)
	var errs []error
	for range deep {
		errs = append(errs, <-ended)
	}
	if more := len(opened); more != deep*(maxDepth-1) {
		t.Errorf("%d documents of the deep indexes were read, want %d", deep+more, deep*maxDepth)
	}
	for _, err := range errs {
		wantError(t, err, image.ReasonPull, "nested more than 4 levels")
	}
}
