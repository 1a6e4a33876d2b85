//go:build e2e

package main

import (
	"cmp"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/test/signing"
)

// signingKeys are the keys of scripts, by the paths of their public keys.
var signingKeys sync.Map

// newSigningKey is the command `keygen FILE`: it writes the public key of a new pair.
func newSigningKey(ts *testscript.TestScript, _ bool, args []string) {
	k := signing.NewKey("ecdsa")
	signingKeys.Store(ts.MkAbs(args[0]), k)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), k.Public, 0o644))
}

// pushArchive is the command `push-archive FILE REPOSITORY:TAG`: it pushes the image of an archive.
func pushArchive(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	pushTar(ts, f, args[1])
}

// pushIndex is the command `push-index REPOSITORY:TAG TAG[=ARCHITECTURE]...`: it pushes an index of images in the same repository.
func pushIndex(ts *testscript.TestScript, _ bool, args []string) {
	repo, tag, _ := strings.Cut(args[0], ":")
	base := "http://" + ts.Getenv("REGISTRY") + "/v2/" + repo
	var list []ocispec.Descriptor
	for _, arg := range args[1:] {
		other, architecture, _ := strings.Cut(arg, "=")
		d := resolve(ts, base+"/manifests/"+other)
		d.Platform = &ocispec.Platform{OS: "linux", Architecture: cmp.Or(architecture, runtime.GOARCH)}
		list = append(list, d)
	}
	pushArtifact(ts, base, signing.Index(list...), tag)
}

// signImage is the command `sign FILE REPOSITORY:TAG simple|bundle`: it signs an image of the registry with the key of `keygen FILE`.
func signImage(ts *testscript.TestScript, _ bool, args []string) {
	value, ok := signingKeys.Load(ts.MkAbs(args[0]))
	if !ok {
		ts.Fatalf("no key %s", args[0])
	}
	k := value.(signing.Key)
	repo, tag, _ := strings.Cut(args[1], ":")
	base := "http://" + ts.Getenv("REGISTRY") + "/v2/" + repo
	subject := resolve(ts, base+"/manifests/"+tag)
	tag = strings.Replace(subject.Digest.String(), ":", "-", 1)
	if args[2] == "simple" {
		pushArtifact(ts, base, k.Attached(ts.Getenv("REGISTRY")+"/"+repo, subject.Digest), tag+".sig")
		return
	}
	a := k.Referrer(signing.SignPredicate, subject)
	pushArtifact(ts, base, a, a.Descriptor.Digest.String())
	list := signing.Index(a.Descriptor) // docker-registry has no referrers API: the tag is its fallback
	pushArtifact(ts, base, list, tag)
}

// resolve returns the descriptor of a manifest.
func resolve(ts *testscript.TestScript, url string) ocispec.Descriptor {
	q, err := http.NewRequest(http.MethodGet, url, nil)
	ts.Check(err)
	q.Header.Add("Accept", ocispec.MediaTypeImageManifest)
	q.Header.Add("Accept", ocispec.MediaTypeImageIndex)
	r, err := http.DefaultClient.Do(q)
	ts.Check(err)
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	ts.Check(err)
	if r.StatusCode != http.StatusOK {
		ts.Fatalf("%s: %s", url, r.Status)
	}
	return ocispec.Descriptor{MediaType: r.Header.Get("Content-Type"), Digest: digest.FromBytes(data), Size: int64(len(data))}
}

func pushArtifact(ts *testscript.TestScript, base string, a signing.Artifact, reference string) {
	for d, data := range a.Blobs {
		upload := send(ts, http.MethodPost, base+"/blobs/uploads/", "", nil)
		send(ts, http.MethodPut, upload+"&digest="+d.String(), "application/octet-stream", data)
	}
	send(ts, http.MethodPut, base+"/manifests/"+reference, a.Descriptor.MediaType, a.Manifest)
}
