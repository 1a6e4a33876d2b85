//go:build e2e

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/test/ocitar"
	"github.com/podstead/podstead/test/signing"
)

func init() {
	imageCommands["forge-registry"] = forgeRegistry
	imageCommands["forge-archive"] = forgeArchive
}

// forged is the content of a registry, by the path of the request. A path without content has the status 404, and content that is nil has
// 500.
type forged map[string][]byte

// forgeries change a repository, whose image has no signature yet, so that no tool would write it. The tag is that of the signatures of
// the image.
var forgeries = map[string]func(f forged, repo, tag string){
	"document": func(f forged, repo, tag string) { // after the digest is known
		f[repo+"/manifests/"+subjectOf(tag)] = nil
	},
	"unavailable": func(f forged, repo, tag string) { f[repo+"/manifests/"+tag] = nil },
	"malformed":   func(f forged, repo, tag string) { f.manifest(repo, tag, []byte("[]")) },
	"layers":      func(f forged, repo, tag string) { f.artifact(repo, tag, simpleLayers(129, "x")) },
	"many":        func(f forged, repo, tag string) { f.artifact(repo, tag, simpleLayers(100, "x")) },
	"changed": func(f forged, repo, tag string) {
		f.artifact(repo, tag, simpleLayers(1, "x"))
		f[repo+"/blobs/"+digest.FromString("x").String()] = []byte("y")
	},
	"digest": func(f forged, repo, tag string) {
		a := signing.NewArtifact("", nil, simpleLayers(1, "x")...)
		f.manifest(repo, tag, bytes.ReplaceAll(a.Manifest, []byte(digest.FromString("x")), []byte("sha256:1")))
	},
	"large": func(f forged, repo, tag string) {
		a := signing.NewArtifact("", nil, simpleLayers(1, "x")...)
		f.manifest(repo, tag, bytes.ReplaceAll(a.Manifest, []byte(`"size":1,`), []byte(`"size":70000,`)))
	},
	"silent": func(f forged, repo, tag string) {
		f[repo+"/manifests/"+tag], f[repo+"/referrers/"+subjectOf(tag)] = []byte(late), []byte(endless)
	},
	"slow": func(f forged, repo, _ string) {
		for p := range f {
			if strings.HasPrefix(p, repo+"/blobs/") {
				f[p] = []byte(endless)
			}
		}
	},
	"total": func(f forged, repo, tag string) {
		var layers []signing.Layer
		for n := range 100 {
			layers = append(layers, signing.Layer{MediaType: signing.BundleType, Data: fmt.Appendf(nil, "%0200000d", n)})
		}
		f.artifact(repo, tag, layers)
	},
}

// subjectOf returns the digest of the image whose signatures have a tag.
func subjectOf(tag string) string {
	return strings.Replace(strings.TrimSuffix(tag, ".sig"), "-", ":", 1)
}

// The content that is sent byte by byte, without end, and the one that is not found after a while.
const (
	endless = "endless"
	late    = "late"
)

// drip sends a byte from time to time.
func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, err := w.Write([]byte(" ")); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// simpleLayers returns signatures with the same payload.
func simpleLayers(n int, payload string) []signing.Layer {
	var list []signing.Layer
	for range n {
		list = append(list,
			signing.Layer{MediaType: signing.SimpleType, Data: []byte(payload), Annotations: map[string]string{signing.Annotation: "eA=="}})
	}
	return list
}

// manifest adds a manifest with its tag and its digest.
func (f forged) manifest(repo, tag string, data []byte) {
	f[repo+"/manifests/"+tag], f[repo+"/manifests/"+digest.FromBytes(data).String()] = data, data
}

func (f forged) artifact(repo, tag string, layers []signing.Layer) {
	a := signing.NewArtifact("", nil, layers...)
	for d, data := range a.Blobs {
		f[repo+"/blobs/"+d.String()] = data
	}
	f.manifest(repo, tag, a.Manifest)
}

// ServeHTTP implements [http.Handler].
func (f forged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, found := f[strings.TrimPrefix(r.URL.Path, "/v2/")]
	switch {
	case r.URL.Path == "/v2/":
		return
	case !found:
		http.NotFound(w, r)
		return
	case data == nil && (r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, ".sig")):
		w.WriteHeader(http.StatusInternalServerError)
		return
	case string(data) == endless:
		drip(w, r)
		return
	case string(data) == late:
		select {
		case <-time.After(10 * time.Second):
		case <-r.Context().Done():
		}
		http.NotFound(w, r)
		return
	}
	if strings.Contains(r.URL.Path, "/manifests/") {
		typed := struct{ MediaType string }{ocispec.MediaTypeImageManifest}
		_ = json.Unmarshal(data, &typed) // what is malformed is a manifest
		w.Header().Set("Content-Type", typed.MediaType)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // the client may close the connection
	}
}

// forgeRegistry is the command `forge-registry NAME`: it starts a registry with the repository shop/KIND for each of the forgeries, and
// sets $NAME to its address. The image has the tag 1.
func forgeRegistry(ts *testscript.TestScript, _ bool, args []string) {
	f := forged{}
	for kind, forge := range forgeries {
		repo := "shop/" + kind
		var archive bytes.Buffer
		ts.Check(ocitar.WriteOCI(&archive, ocitar.Image{
			Name: "localhost/shop:1", Config: ocispec.ImageConfig{Cmd: []string{"/version"}, Labels: map[string]string{"kind": kind}},
			Layers: []ocitar.Layer{{{Path: "version", Mode: 0o644, Data: []byte(kind)}}},
		}))
		image, blobs := layoutOf(ts, &archive)
		for d, data := range blobs {
			f[repo+"/blobs/"+d.String()] = data
		}
		manifest := image.Manifests[0]
		f.manifest(repo, "1", blobs[manifest.Digest])
		forge(f, repo, strings.Replace(manifest.Digest.String(), ":", "-", 1)+".sig")
		if kind != "many" {
			continue
		}
		// An index and its manifest have so many signatures together.
		manifest.Annotations, manifest.Platform = nil, &ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
		index := signing.Index(manifest)
		f.manifest(repo, "1", index.Manifest)
		forge(f, repo, strings.Replace(index.Descriptor.Digest.String(), ":", "-", 1)+".sig")
	}
	server := httptest.NewServer(f)
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.Listener.Addr().String())
}

// layoutOf returns the index and the blobs of an archive in the OCI layout.
func layoutOf(ts *testscript.TestScript, archive io.Reader) (index ocispec.Index, blobs map[digest.Digest][]byte) {
	blobs = map[digest.Digest][]byte{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return index, blobs
		}
		ts.Check(err)
		data, err := io.ReadAll(r)
		ts.Check(err)
		if h.Name == ocispec.ImageIndexFile {
			ts.Check(json.Unmarshal(data, &index))
		} else if strings.HasPrefix(h.Name, "blobs/sha256/") {
			blobs[digest.Digest("sha256:"+path.Base(h.Name))] = data
		}
	}
}

// forgeArchive is the command `forge-archive FILE TO missing|unnamed`: it adds a signature whose payload is missing to an archive in the
// OCI layout, or more manifests without a name than an archive may have.
func forgeArchive(ts *testscript.TestScript, _ bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	index, blobs := layoutOf(ts, bytes.NewReader(data))
	a, copies := signing.NewArtifact("", nil, simpleLayers(1, "x")...), 1
	if args[2] == "unnamed" {
		copies = 129
	} else {
		a.Descriptor.Annotations = map[string]string{ocispec.AnnotationRefName: "sha256-" + index.Manifests[0].Digest.Encoded() + ".sig"}
	}
	blobs[a.Descriptor.Digest] = a.Manifest
	for range copies {
		index.Manifests = append(index.Manifests, a.Descriptor)
	}
	changed, err := json.Marshal(index)
	ts.Check(err)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	write := func(name string, data []byte) {
		ts.Check(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644}))
		_, err := w.Write(data)
		ts.Check(err)
	}
	write(ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion": "1.0.0"}`))
	write(ocispec.ImageIndexFile, changed)
	for d, data := range blobs {
		write("blobs/sha256/"+d.Encoded(), data)
	}
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o644))
}
