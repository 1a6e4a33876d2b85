//go:build e2e

package faults

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layoutRegistry serves the image of an OCI layout, and another one with the same layers.
type layoutRegistry struct {
	t      *testing.T
	server *httptest.Server
	blobs  map[string][]byte // by digest
	other  string            // digest of the manifest of the other image
	tagged atomic.Pointer[string]
	fault  atomic.Pointer[fault]
	count  atomic.Int32 // requests
}

// fault responds to a request for some data, or reports false.
type fault func(w http.ResponseWriter, req *http.Request, data []byte) bool

func newLayoutRegistry(t *testing.T, archive string) *layoutRegistry {
	t.Helper()
	r := &layoutRegistry{t: t, blobs: map[string][]byte{}}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var index ocispec.Index
	for files := tar.NewReader(f); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(files)
		}
		if err == nil && h.Name == "index.json" {
			err = json.Unmarshal(data, &index)
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(h.Name, "blobs/sha256/") {
			r.blobs["sha256:"+path.Base(h.Name)] = data
		}
	}
	root := index.Manifests[0].Digest.String()
	r.other = r.derive(root)
	r.tagged.Store(&root)
	r.server = httptest.NewServer(r)
	t.Cleanup(r.close)
	return r
}

// derive adds an image with another configuration, and returns the digest of its manifest.
func (r *layoutRegistry) derive(root string) string {
	r.t.Helper()
	var manifest ocispec.Manifest
	var config ocispec.Image
	err := json.Unmarshal(r.blobs[root], &manifest)
	if err == nil {
		err = json.Unmarshal(r.blobs[manifest.Config.Digest.String()], &config)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	config.Author = "another image"
	data, err := json.Marshal(config)
	if err != nil {
		r.t.Fatal(err)
	}
	text := bytes.ReplaceAll(r.blobs[root], []byte(manifest.Config.Digest), []byte(r.add(data)))
	text = bytes.Replace(text, fmt.Appendf(nil, `"size":%d`, manifest.Config.Size), fmt.Appendf(nil, `"size":%d`, len(data)), 1)
	return r.add(text)
}

func (r *layoutRegistry) add(data []byte) (digest string) {
	digest = fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	r.blobs[digest] = data
	return digest
}

// image is the name of the image.
func (r *layoutRegistry) image() string { return r.server.Listener.Addr().String() + "/image:1" }

// repoint gives the name to the other image.
func (r *layoutRegistry) repoint() { r.tagged.Store(&r.other) }

func (r *layoutRegistry) close() {
	r.server.CloseClientConnections()
	r.server.Close()
}

func (r *layoutRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.count.Add(1)
	digest := path.Base(req.URL.Path)
	if digest == "1" {
		digest = *r.tagged.Load()
	}
	data, ok := r.blobs[digest]
	if !ok {
		http.NotFound(w, req)
		return
	}
	if wrong := r.fault.Load(); wrong != nil && (*wrong)(w, req, data) {
		return
	}
	if strings.Contains(req.URL.Path, "/manifests/") {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", digest)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if req.Method != http.MethodHead {
		_, _ = w.Write(data) // the client may close the connection
	}
}
