//go:build e2e

package faults

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// hangingRegistry serves an image and stops in the middle of one response: of any request, of the manifest, or of the layer.
type hangingRegistry struct {
	at     string
	called chan struct{}
	end    chan struct{}
}

func (h *hangingRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	config := fmt.Appendf(nil, `{"author":%q,"architecture":%q,"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:%064x"]}}`, h.at,
		runtime.GOARCH, 1)
	const layerSize = 1 << 20
	layer := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(h.at))) // no registry has what another one has sent
	configDigest := fmt.Sprintf("sha256:%x", sha256.Sum256(config))
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
		`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},`+
		`"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":%q,"size":%d}]}`, configDigest, len(config), layer,
		layerSize)
	part, body, kind := "", []byte(nil), "application/octet-stream"
	switch {
	case strings.Contains(r.URL.Path, "/manifests/"):
		part, body, kind = "manifest", manifest, "application/vnd.oci.image.manifest.v1+json"
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(manifest)))
	case strings.HasSuffix(r.URL.Path, configDigest):
		part, body = "config", config
	case strings.HasSuffix(r.URL.Path, layer):
		part, body = "layer", make([]byte, layerSize)
	}
	hangs := h.at == "request" || h.at == part && r.Method == http.MethodGet
	if h.at != "request" {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if hangs {
			body = body[:len(body)/2]
		}
		_, _ = io.Copy(w, bytes.NewReader(body))
	}
	if !hangs {
		return
	}
	_ = http.NewResponseController(w).Flush()
	select {
	case h.called <- struct{}{}:
	default:
	}
	<-h.end
}

// TestRunTimeoutWhilePulling: the timeout of a run applies while a registry hangs, whatever it has sent before, also if other containers
// of the pod run.
func TestRunTimeoutWhilePulling(t *testing.T) {
	// leftovers are not checked: the content of cancelled pulls is kept for the next one
	f := &fixture{rig.NewFixture(t, deadline, "busybox")}
	other := container("first", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")
	for at, first := range map[string]string{"request": "", "manifest": "", "layer": other} {
		t.Run(at, func(t *testing.T) {
			h := &hangingRegistry{at: at, called: make(chan struct{}, 1), end: make(chan struct{})}
			registry := httptest.NewServer(h)
			defer registry.Close()
			defer close(h.end)
			image := strings.TrimPrefix(registry.URL, "http://") + "/image:1"
			file := f.PodFile("waits",
				"terminationGracePeriodSeconds = 1\n"+first+"\n[[containers]]\nname = \"c\"\nimage = \""+image+"\"\n")
			begun := time.Now()
			r := f.start("--timeout", "6s", file)
			code := r.exitCode()
			if code != 5 || !strings.Contains(r.errors(), "timed out after 6s") {
				t.Errorf("exit code %d, want 5: %s", code, r.errors())
			}
			// The registry is given up after 30 s without data. The host may be loaded.
			if took := time.Since(begun); took > 25*time.Second {
				t.Errorf("podstead run --timeout 6s exited after %v", took)
			}
			select {
			case <-h.called:
			default:
				t.Error("the registry received no request")
			}
		})
	}
	f.MustRun("daemon", "stop")
}
