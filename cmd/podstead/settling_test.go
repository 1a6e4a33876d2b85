package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
)

// TestTimeoutOfReadyPod checks what commands report that wait for a shorter time than the minimum ready time of a pod that is ready, or for
// a pod that is stopped: neither is explained by its earlier restarts.
func TestTimeoutOfReadyPod(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("update.minReadySeconds = 3600", runs))
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	h.await(t, "get web", `1/1 +Running`)
	const why = ": the pod is ready, but has not stayed so for its minimum ready time (minReadySeconds)\n"
	for line, want := range map[string]string{
		"apply $DIR/web.toml --wait --timeout 100ms":           `podstead: wait for pod "web": timed out after 100ms` + why,
		"wait web --for=condition=Ready --timeout 100ms":       "podstead: timed out waiting for the condition on pods/web" + why,
		"wait web --for=condition=Ready --timeout 0":           "podstead: condition not met for pods/web" + why,
		"wait web --for=condition=Ready=False --timeout 100ms": "hint: run podstead why web to see what the pod waits for\n",
	} {
		got := h.fails(t, line, statusTimeout, "podstead: ")
		if !strings.HasSuffix(got.stderr, want) || strings.Contains(got.stderr, "running and ready.") {
			t.Errorf("%s:\n%swant the end %q, and no explanation", line, got.stderr, want)
		}
	}
	h.want(t, "stop web", "pod/web stopped\n")
	got := h.fails(t, "wait web --for=condition=Ready --timeout 100ms", statusTimeout, "podstead: timed out waiting")
	if !strings.HasSuffix(got.stderr, "\nhint: the pod is stopped: start it with podstead start web\n") {
		t.Errorf("no hint to start the pod:\n%s", got.stderr)
	}
}

// TestSignalsOfOneStop checks that the signals of timeout(1), or of a terminal that closes, request one stop, and a later one another.
func TestSignalsOfOneStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		signals, stops := make(chan os.Signal, 8), make(chan struct{}, 8)
		go forward(ctx, signals, stops)
		requested := func(n int) int {
			for range n {
				signals <- os.Interrupt
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second) // nothing reads stops while pods are being created
			count := 0
			for {
				synctest.Wait()
				select {
				case <-stops:
					count++
				default:
					return count
				}
			}
		}
		for i, signalled := range []int{2, 1, 3} {
			if got := requested(signalled); got != 1 {
				t.Errorf("request %d with %d signals: got %d stops, want 1", i, signalled, got)
			}
		}
		cancel()
		synctest.Wait()
	})
}
