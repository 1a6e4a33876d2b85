package image_test

import (
	"bytes"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/signing"
)

// pushIndex pushes shop:1, an index for this host, for a platform that this host runs too, and for linux/s390x. It returns the index and
// its manifest for s390x.
func pushIndex(t *testing.T, reg *registry, nested bool) (index, alien ocispec.Descriptor) {
	t.Helper()
	lesser := map[string]string{"amd64": "386", "arm64": "arm"}[runtime.GOARCH]
	var list []ocispec.Descriptor
	for _, architecture := range []string{lesser, runtime.GOARCH, "s390x"} {
		if architecture == "" {
			continue
		}
		img := sample("shop:"+architecture, architecture)
		img.Architecture = architecture
		reg.push(t, img)
		d := reg.target(img.Name)
		d.Platform = &ocispec.Platform{OS: "linux", Architecture: architecture}
		list, alien = append(list, d), d
	}
	all := signing.Index(list...)
	if nested {
		reg.add("shop", "inner", all)
		all = signing.Index(all.Descriptor)
	}
	reg.add("shop", "1", all)
	return all.Descriptor, alien
}

// TestSignedIndexIsCarried: the signature of an index or of its manifest is verified on a host that gets the image for one platform as an
// archive, without a registry.
func TestSignedIndexIsCarried(t *testing.T) {
	t.Parallel()
	k := signing.NewKey("ecdsa")
	for name, c := range map[string]struct{ nested, manifest bool }{
		"index": {}, "manifest": {manifest: true}, "nested index": {nested: true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := newRegistry(t)
			index, _ := pushIndex(t, reg, c.nested)
			repo, signed := reg.host+"/shop", index.Digest
			if c.manifest {
				signed = reg.target("shop:" + runtime.GOARCH).Digest
			}
			reg.add("shop", sigTag(signed), k.Attached(repo, signed))
			ctx, w := newEnv(t, image.Options{})
			if _, err := w.scope.Ensure(ctx, repo+":1", "", nil); err != nil {
				t.Fatal(err)
			}
			list, err := w.store.Signatures(ctx, repo+":1")
			if err != nil || len(list) != 1 {
				t.Fatalf("%d signatures, %v", len(list), err)
			}
			var archive bytes.Buffer
			if err := w.store.Export(ctx, &archive, repo+":1"); err != nil {
				t.Fatal(err)
			}
			found, _, err := image.ReadContents(bytes.NewReader(archive.Bytes()), false)
			if err != nil || len(found) != 1 || found[0].Digest != index.Digest.String() || len(found[0].Platforms) != 1 {
				t.Fatalf("%+v, %v: want the index with one platform", found, err)
			}
			reg.intercept(hangUp)
			other, target := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
			_, err = target.store.Import(other, bytes.NewReader(archive.Bytes()), true)
			wantReason(t, err, unsigned)
			nothingUnpacked(other, t, target)
			imported, err := target.store.Import(other, bytes.NewReader(archive.Bytes()), true, list...)
			if err != nil {
				t.Fatal(err)
			}
			if imported[0].Target.Digest != signed {
				t.Errorf("target %s, want %s, which is signed", imported[0].Target.Digest, signed)
			}
			img, err := target.scope.Ensure(other, repo+":1", spec.PullNever, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := target.read(other, t, img, "version"); got != runtime.GOARCH {
				t.Errorf("version %q", got)
			}
		})
	}
}

// TestExportForAnotherPlatform: an exported archive has the index with the manifest for the platform, and an image that is pinned to the
// digest of an index has this digest.
func TestExportForAnotherPlatform(t *testing.T) {
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	index, alien := pushIndex(t, reg, false)
	repo := reg.host + "/shop"
	reg.add("shop", sigTag(alien.Digest), k.Attached(repo, alien.Digest))
	ctx, w := newEnv(t, image.Options{})
	platform, err := w.store.ParsePlatform("linux/s390x")
	if err != nil {
		t.Fatal(err)
	}
	pinned := repo + "@" + index.Digest.String()
	if _, err := w.store.PullByHand(ctx, pinned, platform, spec.PullAlways, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.scope.Ensure(ctx, repo+":1", "", nil); err != nil { // shares the index
		t.Fatal(err)
	}
	list, err := w.store.Signatures(ctx, platform.Record(pinned))
	if err != nil || len(list) != 1 {
		t.Errorf("%d signatures, %v", len(list), err)
	}
	if list, err := w.store.Signatures(ctx, repo+":1"); err != nil || len(list) != 0 {
		t.Errorf("%d signatures of the manifest for this host, %v", len(list), err)
	}
	var archive bytes.Buffer
	if err := w.store.Export(ctx, &archive, platform.Record(pinned)); err != nil {
		t.Fatal(err)
	}
	found, _, err := image.ReadContents(bytes.NewReader(archive.Bytes()), false)
	if err != nil || len(found) != 1 || found[0].Digest != index.Digest.String() || strings.Join(found[0].Platforms, " ") != "linux/s390x" {
		t.Errorf("%+v, %v", found, err)
	}
	if !bytes.Contains(archive.Bytes(), []byte(`"RepoTags":[],`)) {
		t.Error("manifest.json has a name with a digest, which docker load refuses")
	}
	if err := w.store.Export(ctx, failingWriter{}, platform.Record(pinned)); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("export to a full disk: %v", err)
	}
}

// TestSignaturesOfRegistry: what is wrong with the registry of an image is an error, and what is wrong with one place only is not if the
// other has signatures.
func TestSignaturesOfRegistry(t *testing.T) {
	t.Parallel()
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	ref, repo, d := reg.host+"/shop:1", reg.host+"/shop", reg.target("shop:1").Digest
	ctx, w := newEnv(t, image.Options{})
	if _, err := w.store.Signatures(ctx, ref); err == nil || !image.IsNotFound(err) {
		t.Errorf("unknown image: %v", err)
	}
	if _, err := w.scope.Ensure(ctx, ref, "", nil); err != nil {
		t.Fatal(err)
	}
	if list, err := w.store.Signatures(ctx, ref); err != nil || len(list) > 0 {
		t.Errorf("%d signatures, %v; want none", len(list), err)
	}
	reg.add("shop", sigTag(d), k.Attached(repo, d))
	reg.intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".sig") || !strings.Contains(r.URL.Path, "sha256-") {
			return false
		}
		http.Error(rw, "broken", http.StatusForbidden) // the tag for referrers
		return true
	})
	if list, err := w.store.Signatures(ctx, ref); err != nil || len(list) != 1 {
		t.Errorf("%d signatures, %v; want one", len(list), err)
	}
	reg.intercept(hangUp)
	_, err := w.store.Signatures(ctx, ref)
	wantReason(t, err, image.ReasonPull)
	if signature.Refused(err) || !strings.Contains(err.Error(), "get signatures of image") {
		t.Error(err)
	}
	imported := importAll(ctx, t, w, sample(reg.host+"/other:1", "1"))
	if list, err := w.store.Signatures(ctx, imported[0].Name); err != nil || len(list) > 0 {
		t.Errorf("imported image: %d signatures, %v; want none, without a request", len(list), err)
	}
}

// TestTooManySignatures bounds what a registry can send.
func TestTooManySignatures(t *testing.T) {
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	ref, repo, d := reg.host+"/shop:1", reg.host+"/shop", reg.target("shop:1").Digest
	payload, sig := k.Simple(repo, d)
	layers := make([]signing.Layer, signature.MaxSignatures+1)
	for i := range layers {
		layers[i] = signing.Layer{MediaType: signing.SimpleType, Data: payload, Annotations: map[string]string{signing.Annotation: sig}}
	}
	reg.add("shop", sigTag(d), signing.NewArtifact("", nil, layers...))
	ctx, w := newEnv(t, image.Options{})
	if _, err := w.scope.Ensure(ctx, ref, "", nil); err != nil {
		t.Fatal(err)
	}
	_, err := w.store.Signatures(ctx, ref)
	if e, ok := errors.AsType[*image.Error](err); !ok || !strings.Contains(e.Message, "layers, the limit is 128") ||
		strings.Contains(e.Message, "images.verify") {
		t.Error(err)
	}
}
