//go:build e2e

package hostile

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podstead/podstead/test/ocitar"
)

// registry serves images on a loopback address.
type registry struct {
	host             string
	images           map[string]*ocitar.Tree // by repository:tag
	interval         time.Duration           // between the bytes of a blob; 0: all at once
	hurry            chan struct{}           // closed when the rest is to be sent at once
	blobs, manifests atomic.Int32            // requests
}

func newRegistry(t *testing.T, images map[string]*ocitar.Tree) *registry {
	t.Helper()
	r := &registry{images: images, hurry: make(chan struct{})}
	server := httptest.NewServer(r)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	r.host = server.Listener.Addr().String()
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/v2/")
	what, kind := path.Base(name), path.Base(path.Dir(name))
	repository := path.Dir(path.Dir(name))
	for tagged, tree := range r.images {
		if !strings.HasPrefix(tagged, repository+":") {
			continue
		}
		if tagged == repository+":"+what {
			what = tree.Root.Digest.String()
		}
		for d, data := range tree.Blobs {
			if d.String() == what {
				r.send(w, req, kind, tree.Root.MediaType, what, data)
				return
			}
		}
	}
	http.NotFound(w, req)
}

func (r *registry) send(w http.ResponseWriter, req *http.Request, kind, mediaType, digest string, data []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if kind == "manifests" {
		r.manifests.Add(1)
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", digest)
	} else {
		r.blobs.Add(1)
	}
	if req.Method == http.MethodHead {
		return
	}
	if kind == "manifests" || r.interval == 0 {
		_, _ = w.Write(data) // the client may refuse it
		return
	}
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for len(data) > 0 {
		if _, err := w.Write(data[:1]); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		data = data[1:]
		select {
		case <-tick.C:
		case <-r.hurry:
		case <-req.Context().Done():
			return
		}
	}
}
