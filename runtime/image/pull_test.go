package image_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/ocitar"
)

func TestPullFailsWhenRegistryStalls(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	for name, hook := range map[string]func(*registry) func(http.ResponseWriter, *http.Request) bool{
		"no answer": func(*registry) func(http.ResponseWriter, *http.Request) bool { return silence },
		"half a layer": func(reg *registry) func(http.ResponseWriter, *http.Request) bool {
			return halfBlob(reg, func(r *http.Request) { <-r.Context().Done() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{StallTimeout: stall})
			reg := newRegistry(t)
			reg.push(t, large("shop:1", 2<<20))
			reg.intercept(hook(reg))
			_, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil)
			wantError(t, err, image.ReasonPull, reg.host+"/shop:1")
		})
	}
	t.Run("no answer to TCP", func(t *testing.T) {
		ctx, w := newEnv(t, image.Options{StallTimeout: stall})
		l, err := net.Listen("tcp", "127.0.0.1:0") // no accept loop
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, err = w.store.In().Ensure(ctx, l.Addr().String()+"/shop:1", "", nil)
		wantError(t, err, image.ReasonPull)
	})
}

func TestSlowRegistryIsNotStalled(t *testing.T) {
	t.Parallel()
	const stall = timeout / 10
	ctx, w := newEnv(t, image.Options{StallTimeout: stall})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		reg.mu.Lock()
		data := reg.blobs[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		reg.mu.Unlock()
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		tick := time.NewTicker(stall / 10)
		defer tick.Stop()
		step := len(data)/15 + 1 // longer in total than the stall timeout
		for chunk := range slices.Chunk(data, step) {
			<-tick.C
			if _, err := w.Write(chunk); err != nil {
				return true
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return true
			}
		}
		return true
	})
	if _, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil); err != nil {
		t.Error(err)
	}
}

func TestPullIsCancelledAtOnce(t *testing.T) {
	ctx, w := newEnv(t, image.Options{StallTimeout: time.Hour})
	ctx, cancel := context.WithCancel(ctx)
	reg := newRegistry(t)
	reached := make(chan struct{}, 10)
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		reached <- struct{}{}
		return silence(w, r)
	})
	go func() {
		<-reached
		cancel()
	}()
	_, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil)
	var e *image.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &e) {
		t.Errorf("cancelled pull returned %v, want the context's error and no *Error", err)
	}
}

func TestSameImageIsPulledOnce(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	const callers = 5
	gate := make(chan struct{})
	reg.intercept(func(http.ResponseWriter, *http.Request) bool { <-gate; return false })
	ended := make(chan error, callers)
	for range callers {
		go func() {
			_, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", spec.PullAlways, nil)
			ended <- err
		}()
	}
	image.WaitForWaiters(t, w.store, callers)
	close(gate)
	for range callers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := reg.count(http.MethodHead, "manifests"); n != 1 {
		t.Errorf("%d callers requested the name %d times from the registry", callers, n)
	}
}

func TestPullAfterCancelledPullStartsAgain(t *testing.T) {
	ctx, w := newEnv(t, image.Options{StallTimeout: time.Hour})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	reached := make(chan struct{}, 10)
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		reached <- struct{}{}
		return silence(w, r)
	})
	for range 3 {
		first, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := w.store.In().Ensure(first, reg.host+"/shop:1", "", nil)
			ended <- err
		}()
		<-reached
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	reg.intercept(nil)
	if _, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil); err != nil {
		t.Error(err)
	}
}

func TestParallelPullsAreLimited(t *testing.T) {
	ctx, w := newEnv(t, image.Options{MaxParallelPulls: 2})
	reg := newRegistry(t)
	const pulls = 5
	var now, most atomic.Int32
	gate := make(chan struct{})
	reg.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-gate
		}
		return false
	})
	ended := make(chan error, pulls)
	for i := range pulls {
		reg.push(t, sample(fmt.Sprintf("shop%d:1", i), "1"))
	}
	for i := range pulls {
		go func() {
			_, err := w.store.In().Ensure(ctx, fmt.Sprintf("%s/shop%d:1", reg.host, i), "", nil)
			ended <- err
		}()
	}
	image.WaitForWaiters(t, w.store, pulls)
	deadline := time.Now().Add(timeout)
	for now.Load() < 2 {
		if time.Now().After(deadline) {
			t.Fatalf("%d pulls run, want 2", now.Load())
		}
		<-time.After(time.Millisecond)
	}
	close(gate)
	for range pulls {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := most.Load(); n != 2 {
		t.Errorf("%d pulls ran at the same time, want 2", n)
	}
}

func TestProgress(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, large("shop:1", 2<<20))
	release := make(chan struct{})
	reg.intercept(halfBlob(reg, func(r *http.Request) { <-release }))
	var seen []image.Progress
	released := false
	_, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", func(p image.Progress) {
		seen = append(seen, p)
		if !released && p.Bytes > 1<<20 {
			released = true
			reg.intercept(nil) // the connection is broken and the client requests the rest
			close(release)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	last := image.Progress{}
	for i, p := range seen { // the first report announces the pull
		if p.Unpacking { // of a slow host
			break
		}
		if p.Bytes < last.Bytes || p.Bytes > p.TotalBytes || p.Layers > p.TotalLayers || p.TotalLayers != 2 && i > 0 {
			t.Errorf("progress %+v after %+v", p, last)
		}
		last = p
	}
	if seen[0] != (image.Progress{}) || last.TotalBytes < 2<<20 {
		t.Errorf("progress was %+v", seen)
	}
}

// TestUnpackingIsReported has a pulled image, one that shares a layer with another image, and an imported one. The second of the layers
// that are unpacked is unpacked when the first one is reported.
func TestUnpackingIsReported(t *testing.T) {
	t.Parallel()
	const size = 2 << 20
	for name, prepare := range map[string]func(context.Context, *testing.T, *env) string{
		"with a shared layer": func(ctx context.Context, t *testing.T, w *env) string {
			reg := newRegistry(t)
			first, second := large("shop:1", size), large("shop:2", size)
			second.Layers = []ocitar.Layer{first.Layers[0], {{Path: "second", Mode: 0o644}}, {{Path: "third", Mode: 0o644}}}
			reg.push(t, first)
			reg.push(t, second)
			if _, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil); err != nil {
				t.Fatal(err)
			}
			return reg.host + "/shop:2"
		},
		"pulled": func(_ context.Context, t *testing.T, _ *env) string {
			reg := newRegistry(t)
			reg.push(t, large("shop:1", size))
			return reg.host + "/shop:1"
		},
		"imported": func(ctx context.Context, t *testing.T, w *env) string {
			f, err := os.Open(save(t, large("localhost/shop:1", size)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := w.store.Import(ctx, f, true); err != nil {
				t.Fatal(err)
			}
			return "localhost/shop:1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, w := newEnv(t, image.Options{})
			reported := make(chan struct{})
			report := sync.OnceFunc(func() { close(reported) })
			ref := prepare(ctx, t, w)
			var layers atomic.Int32
			w.applier.before = func(ctx context.Context) error {
				if layers.Add(1) < 2 {
					return nil
				}
				select {
				case <-reported:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			var last image.Progress
			_, err := w.store.In().Ensure(ctx, ref, "", func(p image.Progress) {
				if last = p; p.Unpacking && p.Bytes > 0 {
					report()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			shared := name == "with a shared layer"
			if !last.Unpacking || last.Bytes > last.TotalBytes || shared == (last.TotalBytes > size) || last.Layers != last.TotalLayers {
				t.Errorf("progress %+v", last)
			}
		})
	}
}

func TestFailedPullIsResumed(t *testing.T) {
	t.Parallel()
	ctx, w := newEnv(t, image.Options{StallTimeout: timeout / 10})
	reg := newRegistry(t)
	reg.push(t, large("shop:1", 2<<20))
	reg.intercept(halfBlob(reg, func(r *http.Request) { <-r.Context().Done() }))
	ref := reg.host + "/shop:1"
	if _, err := w.store.In().Ensure(ctx, ref, "", nil); err == nil {
		t.Fatal("an incomplete pull succeeded")
	}
	w.collect(ctx, t)
	var ranges atomic.Int32
	reg.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if from := r.Header.Get("Range"); from != "" && from != "bytes=0-" {
			ranges.Add(1)
		}
		return false
	})
	img, err := w.store.In().Ensure(ctx, ref, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ranges.Load() != 1 {
		t.Errorf("%d requests for the rest of a layer, want 1", ranges.Load())
	}
	if got := w.read(ctx, t, img, "version"); got != "large" {
		t.Errorf("version %q", got)
	}
	if n := w.leases(ctx, t); n != 0 {
		t.Errorf("%d leases remain", n)
	}
}

func TestCorruptDownloadIsNotResumed(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, large("shop:1", 2<<20))
	ref := reg.host + "/shop:1"
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		reg.mu.Lock()
		data := reg.blobs[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		reg.mu.Unlock()
		if len(data) < 1<<20 {
			return false
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), len(data))); err != nil {
			t.Error(err)
		}
		return true
	})
	_, err := w.store.In().Ensure(ctx, ref, "", nil)
	wantError(t, err, image.ReasonPull, "digest")
	reg.intercept(nil)
	if _, err := w.store.In().Ensure(ctx, ref, "", nil); err != nil {
		t.Errorf("after a corrupt download: %v", err)
	}
}

func TestHangingMirrorIsSkipped(t *testing.T) {
	t.Parallel()
	reg, mirror := newRegistry(t), newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	mirror.intercept(silence)
	certs := t.TempDir()
	host := filepath.Join(certs, "registry.example")
	if err := os.Mkdir(host, 0o755); err != nil {
		t.Fatal(err)
	}
	hosts := fmt.Sprintf("server = %q\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+reg.host, "http://"+mirror.host)
	if err := os.WriteFile(filepath.Join(host, "hosts.toml"), []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, w := newEnv(t, image.Options{CertsDir: certs, StallTimeout: timeout / 20})
	img, err := w.store.In().Ensure(ctx, "registry.example/shop:1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read(ctx, t, img, "version"); got != "1" || mirror.count(http.MethodHead, "manifests") == 0 {
		t.Errorf("version %q, %d requests to the mirror", got, mirror.count(http.MethodHead, "manifests"))
	}
}

func TestCloseCancelsPulls(t *testing.T) {
	ctx, w := newEnv(t, image.Options{StallTimeout: time.Hour})
	reg := newRegistry(t)
	reached := make(chan struct{}, 10)
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		reached <- struct{}{}
		return silence(w, r)
	})
	ended := make(chan error, 1)
	go func() {
		_, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil)
		ended <- err
	}()
	<-reached
	w.store.Close()
	if err := <-ended; !errors.Is(err, image.ErrClosed) {
		t.Errorf("the pull returned %v", err)
	}
	if _, err := w.store.In().Ensure(ctx, reg.host+"/shop:1", "", nil); !errors.Is(err, image.ErrClosed) {
		t.Errorf("a pull with a closed store returned %v", err)
	}
}
