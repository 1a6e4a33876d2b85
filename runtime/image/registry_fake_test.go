package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/test/ocitar"
)

// registry serves images on a loopback address over plain HTTP and counts requests. A hook can replace the response.
type registry struct {
	host string

	mu    sync.Mutex
	blobs map[string][]byte             // key: digest
	tags  map[string]ocispec.Descriptor // key: repository:tag
	asked []string
	hook  func(w http.ResponseWriter, r *http.Request) (done bool)
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	reg := &registry{blobs: map[string][]byte{}, tags: map[string]ocispec.Descriptor{}}
	srv := httptest.NewServer(reg)
	t.Cleanup(srv.Close)
	reg.host = srv.Listener.Addr().String()
	return reg
}

// push adds images with names of the form repository:tag.
func (reg *registry) push(t *testing.T, images ...ocitar.Image) {
	t.Helper()
	var buf bytes.Buffer
	if err := ocitar.WriteOCI(&buf, images...); err != nil {
		t.Fatal(err)
	}
	reg.mu.Lock()
	defer reg.mu.Unlock()
	var index ocispec.Index
	for r := tar.NewReader(&buf); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "index.json" {
			if err := json.Unmarshal(data, &index); err != nil {
				t.Fatal(err)
			}
		}
		reg.blobs["sha256:"+path.Base(h.Name)] = data
	}
	for i, img := range images {
		reg.tags[img.Name] = index.Manifests[i]
	}
}

// intercept sets the hook.
func (reg *registry) intercept(hook func(http.ResponseWriter, *http.Request) bool) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.hook = hook
}

// count returns the number of requests of this method and kind.
func (reg *registry) count(method, kind string) (n int) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	for _, a := range reg.asked {
		if strings.HasPrefix(a, method+" ") && strings.Contains(a, "/"+kind+"/") {
			n++
		}
	}
	return n
}

func (reg *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reg.mu.Lock()
	reg.asked = append(reg.asked, r.Method+" "+r.URL.Path)
	hook := reg.hook
	reg.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	reg.serve(w, r)
}

func (reg *registry) serve(w http.ResponseWriter, r *http.Request) {
	p := strings.TrimPrefix(r.URL.Path, "/v2/")
	repo, what := path.Dir(path.Dir(p)), path.Base(p)
	reg.mu.Lock()
	d := what
	mediaType := ocispec.MediaTypeImageManifest
	if tagged, ok := reg.tags[repo+":"+what]; ok {
		d, mediaType = tagged.Digest.String(), tagged.MediaType
	} else if bytes.Contains(reg.blobs[d], []byte(`"manifests"`)) {
		mediaType = ocispec.MediaTypeImageIndex
	}
	data, ok := reg.blobs[d]
	reg.mu.Unlock()
	if !ok || strings.Contains(p, "/referrers/") { // which many registries do not have
		http.NotFound(w, r)
		return
	}
	if strings.Contains(p, "/manifests/") {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", d)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// hangUp closes the connection without a response.
func hangUp(w http.ResponseWriter, _ *http.Request) bool {
	panic(http.ErrAbortHandler)
}

// silence sends no response until the client disconnects.
func silence(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// large returns a sample whose first layer has size bytes, compressed and unpacked.
func large(name string, size int) ocitar.Image {
	img := sample(name, "large")
	img.Gzip = false
	img.Layers[0][1].Data = make([]byte, size)
	rng := rand.NewChaCha8([32]byte{})
	if _, err := rng.Read(img.Layers[0][1].Data); err != nil {
		panic(err) // cannot fail
	}
	return img
}

// halfBlob sends the first half of a large blob and then calls rest.
func halfBlob(reg *registry, rest func(*http.Request)) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		reg.mu.Lock()
		data := reg.blobs[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		reg.mu.Unlock()
		if r.Method != http.MethodGet || len(data) < 1<<20 {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if _, err := w.Write(data[:len(data)/2]); err != nil {
			return true
		}
		if err := http.NewResponseController(w).Flush(); err == nil {
			rest(r)
		}
		return true
	}
}
