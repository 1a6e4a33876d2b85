package image_test

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
)

// isBlob reports whether a request is for a large blob, and returns it.
func isBlob(reg *registry, r *http.Request) ([]byte, bool) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	data := reg.blobs[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
	return data, r.Method == http.MethodGet && len(data) >= 1<<20
}

// TestRegistryFaults pulls from a registry that fails, and again when it has recovered.
func TestRegistryFaults(t *testing.T) {
	const size = 2 << 20
	for _, test := range []struct {
		name string
		hook func(reg *registry, n int32, w http.ResponseWriter, r *http.Request) bool // n counts the requests
		want string                                                                    // of the first pull; "": it succeeds by itself
	}{
		{"connection is lost again and again", func(reg *registry, _ int32, w http.ResponseWriter, r *http.Request) bool {
			data, ok := isBlob(reg, r)
			if !ok {
				return false
			}
			from := 0
			_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
			if from+size/4 >= len(data) {
				return false
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(data)-from))
			if from > 0 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
				w.WriteHeader(http.StatusPartialContent)
			}
			_, _ = w.Write(data[from : from+size/4])
			panic(http.ErrAbortHandler)
		}, ""},
		{"truncated", func(reg *registry, _ int32, w http.ResponseWriter, r *http.Request) bool {
			data, ok := isBlob(reg, r)
			if ok {
				_, _ = w.Write(data[:len(data)/2]) // a complete response
			}
			return ok
		}, "unexpected EOF|failed size validation|short"},
		{"rate limit for a second", func(_ *registry, n int32, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return n == 1
		}, ""},
		{"rate limit for minutes", func(_ *registry, _ int32, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, "limits requests (429 Too Many Requests), next request possible in 10m0s"},
		{"internal error", func(_ *registry, _ int32, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}, "500 Internal Server Error"},
		{"one internal error", func(_ *registry, n int32, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return n == 1
		}, ""},
		{"dies before it answers", func(_ *registry, _ int32, w http.ResponseWriter, r *http.Request) bool { return hangUp(w, r) }, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, w := newEnv(t, image.Options{})
			reg := newRegistry(t)
			reg.push(t, large("shop:1", size))
			var n atomic.Int32
			reg.intercept(func(w http.ResponseWriter, r *http.Request) bool { return test.hook(reg, n.Add(1), w, r) })
			ref := reg.host + "/shop:1"
			_, err := w.store.In().Ensure(ctx, ref, "", nil)
			if n.Load() > 20 {
				t.Errorf("%d requests for one pull", n.Load())
			}
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
			} else if err == nil || !containsAny(err.Error(), test.want) {
				t.Fatalf("error %v, want %s", err, test.want)
			}
			requests := n.Load()
			if strings.Contains(test.name, "minutes") {
				if _, err := w.store.In().Ensure(ctx, ref, "", nil); err == nil || n.Load() != requests {
					t.Errorf("%d requests before the registry accepts one: %v", n.Load()-requests, err)
				}
				return
			}
			reg.intercept(nil)
			img, err := w.store.In().Ensure(ctx, ref, "", nil)
			if err != nil {
				t.Fatalf("after the fault: %v", err)
			}
			if got := w.read(ctx, t, img, "version"); got != "large" {
				t.Errorf("version %q", got)
			}
			if n := w.leases(ctx, t); n != 0 {
				t.Errorf("%d leases remain", n)
			}
		})
	}
}

func containsAny(text, alternatives string) bool {
	for want := range strings.SplitSeq(alternatives, "|") {
		if strings.Contains(text, want) {
			return true
		}
	}
	return false
}

// TestBandwidth checks that two pulls together are limited, and that a change of the limit affects pulls in progress.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	const size, limit = 1 << 20, 512 << 10
	ctx, w := newEnv(t, image.Options{Bandwidth: limit})
	reg := newRegistry(t)
	reg.push(t, large("a:1", size), large("b:1", size))
	start := time.Now()
	errs := make(chan error, 2)
	for _, name := range []string{"a:1", "b:1"} {
		go func() {
			_, err := w.store.In().Ensure(ctx, reg.host+"/"+name, "", nil)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	// Both images have the same large layer, which at least one of them pulls.
	least := time.Duration(float64(size-limit/8) / limit * float64(time.Second))
	if took := time.Since(start); took < least {
		t.Errorf("the pulls took %v, want at least %v", took, least)
	}

	w.store.SetBandwidth(4 << 10)
	reg.push(t, large("c:1", size+1))
	first := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		_, err := w.store.In().Ensure(ctx, reg.host+"/c:1", "", func(p image.Progress) {
			if p.Bytes > 0 && p.Bytes < p.TotalBytes {
				select {
				case first <- struct{}{}:
				default:
				}
			}
		})
		ended <- err
	}()
	select {
	case <-first:
	case err := <-ended:
		t.Fatalf("the pull with the low limit ended: %v", err)
	case <-time.After(timeout):
		t.Fatal("the pull makes no progress")
	}
	w.store.SetBandwidth(math.MaxInt32)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(timeout):
		t.Error("the pull does not use the new limit")
	}
}
