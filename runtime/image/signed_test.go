package image_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/signing"
)

const unsigned = "SignatureValidationFailed"

// signedBy returns a policy that requires a signature by a key for a prefix.
func signedBy(t *testing.T, prefix string, k signing.Key) *signature.Policy {
	t.Helper()
	key, err := signature.ParseKey("/keys/shop.pub", k.Public)
	if err != nil {
		t.Fatal(err)
	}
	return &signature.Policy{Rules: []signature.Rule{{Prefix: prefix, Type: signature.Signed, Keys: []signature.Key{key}}}}
}

// add adds an artifact with a tag.
func (reg *registry) add(repo, tag string, a signing.Artifact) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	for d, data := range a.Blobs {
		reg.blobs[d.String()] = data
	}
	reg.blobs[a.Descriptor.Digest.String()] = a.Manifest
	if tag != "" {
		reg.tags[repo+":"+tag] = a.Descriptor
	}
}

// target returns what a tag refers to.
func (reg *registry) target(ref string) ocispec.Descriptor {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	return reg.tags[ref]
}

func sigTag(d digest.Digest) string { return strings.Replace(d.String(), ":", "-", 1) + ".sig" }

// nothingUnpacked checks that a refusal has left neither content nor snapshots.
func nothingUnpacked(ctx context.Context, t *testing.T, w *env) {
	t.Helper()
	if blobs, snapshots := w.blobs(ctx, t), w.snapshots(ctx, t); blobs > 0 || snapshots > 0 {
		t.Errorf("%d blobs and %d snapshots after a refusal", blobs, snapshots)
	}
	if applied, _ := w.applier.counts(); applied > 0 {
		t.Errorf("%d layers were unpacked", applied)
	}
}

func TestPullVerifiesSignatures(t *testing.T) {
	t.Parallel()
	k, stranger := signing.NewKey("ecdsa"), signing.NewKey("ecdsa")
	other := digest.FromString("other")
	fallback := func(d digest.Digest) string { return strings.Replace(d.String(), ":", "-", 1) }
	referrer := func(reg *registry, repo string, a signing.Artifact, subject digest.Digest) {
		reg.add(repo, "", a)
		reg.add(repo, fallback(subject), signing.Index(a.Descriptor))
	}
	for name, c := range map[string]struct {
		sign func(reg *registry, repo string, d ocispec.Descriptor)
		want string // empty: accepted
	}{
		"simple signing at the tag": {func(reg *registry, repo string, d ocispec.Descriptor) {
			reg.add("shop", sigTag(d.Digest), k.Attached(repo, d.Digest))
		}, ""},
		"bundle as a referrer": {func(reg *registry, _ string, d ocispec.Descriptor) {
			referrer(reg, "shop", k.Referrer(signing.SignPredicate, d), d.Digest)
		}, ""},
		"bundle from the referrers API": {func(reg *registry, _ string, d ocispec.Descriptor) {
			a := k.Referrer(signing.SignPredicate, d)
			reg.add("shop", "", a)
			reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/referrers/"+d.Digest.String()) {
					return false
				}
				w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
				_, _ = w.Write(signing.Index(a.Descriptor).Manifest)
				return true
			})
		}, ""},
		"simple signing of a stranger, bundle of the key": {func(reg *registry, repo string, d ocispec.Descriptor) {
			reg.add("shop", sigTag(d.Digest), stranger.Attached(repo, d.Digest))
			referrer(reg, "shop", k.Referrer(signing.SignPredicate, d), d.Digest)
		}, ""},
		"no signature": {func(*registry, string, ocispec.Descriptor) {}, "no signature of sha256:"},
		"other key": {func(reg *registry, repo string, d ocispec.Descriptor) {
			reg.add("shop", sigTag(d.Digest), stranger.Attached(repo, d.Digest))
		}, "is signed by another key"},
		"other digest": {func(reg *registry, repo string, d ocispec.Descriptor) {
			reg.add("shop", sigTag(d.Digest), k.Attached(repo, other))
		}, `signature is for "` + other.String()},
		"other repository": {func(reg *registry, repo string, d ocispec.Descriptor) {
			reg.add("shop", sigTag(d.Digest), k.Attached(repo+"-old", d.Digest))
		}, "is for repository"},
		"attestation": {func(reg *registry, _ string, d ocispec.Descriptor) {
			referrer(reg, "shop", k.Referrer("https://slsa.dev/provenance/v1", d), d.Digest)
		}, "no signature of sha256:"},
		"huge signature": {func(reg *registry, _ string, d ocispec.Descriptor) {
			huge := signing.Layer{MediaType: signing.SimpleType, Data: make([]byte, 1<<20)}
			reg.add("shop", sigTag(d.Digest), signing.NewArtifact("", nil, huge))
		}, "has 1048576 bytes, the limit is 65536"},
		"huge manifest": {func(reg *registry, _ string, d ocispec.Descriptor) {
			huge := signing.Layer{MediaType: signing.SimpleType, Annotations: map[string]string{"a": strings.Repeat("a", 2<<20)}}
			reg.add("shop", sigTag(d.Digest), signing.NewArtifact("", nil, huge))
		}, "the limit is 1048576"},
		"thousands of layers": {func(reg *registry, _ string, d ocispec.Descriptor) {
			reg.add("shop", sigTag(d.Digest), signing.NewArtifact("", nil, make([]signing.Layer, 3000)...))
		}, "has 3000 layers, the limit is 128"},
		"thousands of referrers": {func(reg *registry, _ string, d ocispec.Descriptor) {
			list := make([]ocispec.Descriptor, 3000)
			for i := range list {
				list[i] = k.Referrer(signing.SignPredicate, d).Descriptor
			}
			reg.add("shop", fallback(d.Digest), signing.Index(list...))
		}, "more than 128 signatures"},
		"malformed JSON": {func(reg *registry, _ string, d ocispec.Descriptor) {
			bad := signing.Artifact{
				Manifest:   []byte("{"),
				Descriptor: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("{"), Size: 1},
			}
			reg.add("shop", sigTag(d.Digest), bad)
		}, "manifest of a signature is malformed"},
		"wrong media types": {func(reg *registry, repo string, d ocispec.Descriptor) {
			payload, sig := k.Simple(repo, d.Digest)
			layer := signing.Layer{MediaType: "text/plain", Data: payload, Annotations: map[string]string{signing.Annotation: sig}}
			reg.add("shop", sigTag(d.Digest), signing.NewArtifact("", nil, layer))
		}, "no signature of sha256:"},
		"payload with other bytes": {func(reg *registry, repo string, d ocispec.Descriptor) {
			a := k.Attached(repo, d.Digest)
			for blob, data := range a.Blobs {
				if len(data) > 2 {
					a.Blobs[blob] = []byte(strings.Replace(string(data), "null", "{}  ", 1))
				}
			}
			reg.add("shop", sigTag(d.Digest), a)
		}, "does not match its digest"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := newRegistry(t)
			reg.push(t, sample("shop:1", "one"))
			ref, repo := reg.host+"/shop:1", reg.host+"/shop"
			c.sign(reg, repo, reg.target("shop:1"))
			ctx, w := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
			img, err := w.scope.Ensure(ctx, ref, "", nil)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := w.read(ctx, t, img, "version"); got != "one" {
					t.Errorf("version %q", got)
				}
				d, err := w.store.Detail(ctx, ref)
				if want := (image.Verification{Required: true, Key: "/keys/shop.pub"}); err != nil || d.Verification != want {
					t.Errorf("%+v, %v, want %+v", d.Verification, err, want)
				}
				return
			}
			wantReason(t, err, unsigned)
			if !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), `images.verify prefix "`+repo+`" requires a signature by /keys/shop.pub: `) {
				t.Errorf("%v, want %q", err, c.want)
			}
			nothingUnpacked(ctx, t, w)
			if n := reg.count(http.MethodGet, "blobs"); n > 2 {
				t.Errorf("%d blobs were fetched", n)
			}
		})
	}
}

// wantReason checks the reason of an error.
func wantReason(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*image.Error](err)
	if !ok || e.Reason != want {
		t.Fatalf("error %v (%T), want reason %s", err, err, want)
	}
}

func TestSignatureOfIndexOrManifest(t *testing.T) {
	k := signing.NewKey("ecdsa")
	for name, signs := range map[string]bool{"index": true, "manifest": false} {
		t.Run(name, func(t *testing.T) {
			reg := newRegistry(t)
			foreign := sample("shop:foreign", "foreign")
			foreign.Architecture = "s390x"
			reg.push(t, sample("shop:native", "native"), foreign)
			native, alien := reg.target("shop:native"), reg.target("shop:foreign")
			native.Platform = &ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
			alien.Platform = &ocispec.Platform{OS: "linux", Architecture: "s390x"}
			all := signing.Index(alien, native)
			reg.add("shop", "1", all)
			repo := reg.host + "/shop"
			signed := native.Digest
			if signs {
				signed = all.Descriptor.Digest
			}
			reg.add("shop", sigTag(signed), k.Attached(repo, signed))
			ctx, w := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
			img, err := w.scope.Ensure(ctx, repo+":1", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if img.Target.Digest != signed {
				t.Errorf("target %s, want %s, which is signed", img.Target.Digest, signed)
			}
			platform, err := w.store.ParsePlatform("linux/s390x")
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.store.PullByHand(ctx, repo+":1", platform, spec.PullAlways, nil)
			if signs && err != nil {
				t.Errorf("other platform: %v", err)
			}
			if !signs {
				wantReason(t, err, unsigned)
			}
		})
	}
}

// TestTagMovesAfterVerification replaces the image of the tag as soon as its signature was read.
func TestTagMovesAfterVerification(t *testing.T) {
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "signed"))
	repo := reg.host + "/shop"
	good := reg.target("shop:1")
	reg.add("shop", sigTag(good.Digest), k.Attached(repo, good.Digest))
	reg.push(t, sample("shop:evil", "evil"))
	evil := reg.target("shop:evil")
	reg.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".sig") {
			reg.mu.Lock()
			defer reg.mu.Unlock()
			reg.tags["shop:1"] = evil
		}
		return false
	})
	ctx, w := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
	img, err := w.scope.Ensure(ctx, repo+":1", spec.PullAlways, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read(ctx, t, img, "version"); got != "signed" || img.Target.Digest != good.Digest {
		t.Errorf("version %q of %s", got, img.Target.Digest)
	}
	_, err = w.scope.Ensure(ctx, repo+":1", spec.PullAlways, nil)
	wantReason(t, err, unsigned)
}

// TestSignaturesOfSlowRegistry checks that a registry cannot delay a pull by its signatures, and that this is not a refusal.
func TestSignaturesOfSlowRegistry(t *testing.T) {
	t.Parallel()
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, ".sig") && silence(w, r)
	})
	ctx, w := newEnv(t, image.Options{RateWindow: 3 * time.Second, Verification: signedBy(t, reg.host, k)})
	_, err := w.scope.Ensure(ctx, reg.host+"/shop:1", "", nil)
	wantReason(t, err, image.ReasonPull)
	if !strings.Contains(err.Error(), "the registry did not deliver the signatures within 3s") {
		t.Error(err)
	}
	nothingUnpacked(ctx, t, w)
}

// TestRegistryFailsDuringVerification checks that an error of the registry is not a refusal.
func TestRegistryFailsDuringVerification(t *testing.T) {
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "sha256-") {
			http.Error(w, "broken", http.StatusForbidden)
			return true
		}
		return false
	})
	ctx, w := newEnv(t, image.Options{Verification: signedBy(t, reg.host, k)})
	_, err := w.scope.Ensure(ctx, reg.host+"/shop:1", "", nil)
	wantReason(t, err, image.ReasonPull)
	nothingUnpacked(ctx, t, w)
}

func TestPolicyRejects(t *testing.T) {
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"), sample("shop/web:1", "one"))
	p := &signature.Policy{Default: signature.Reject, Rules: []signature.Rule{{Prefix: reg.host + "/shop/web", Type: signature.Accept}}}
	ctx, w := newEnv(t, image.Options{Verification: p})
	_, err := w.scope.Ensure(ctx, reg.host+"/shop:1", "", nil)
	wantReason(t, err, unsigned)
	if !strings.Contains(err.Error(), "images.verifyDefault rejects the image") {
		t.Error(err)
	}
	if n := reg.count(http.MethodHead, "manifests"); n > 0 {
		t.Errorf("%d requests for an image that is rejected", n)
	}
	if _, err := w.scope.Ensure(ctx, reg.host+"/shop/web:1", "", nil); err != nil {
		t.Error(err)
	}
}

// TestStoredImageIsVerifiedAtUse turns the policy on after an image was pulled.
func TestStoredImageIsVerifiedAtUse(t *testing.T) {
	t.Parallel()
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	ref, repo := reg.host+"/shop:1", reg.host+"/shop"
	ctx, w := newEnv(t, image.Options{})
	if _, err := w.scope.Ensure(ctx, ref, "", nil); err != nil {
		t.Fatal(err)
	}
	w.store.SetVerification(signedBy(t, repo, k))
	for _, policy := range []spec.PullPolicy{spec.PullNever, spec.PullIfNotPresent} {
		_, err := w.scope.Ensure(ctx, ref, policy, nil)
		wantReason(t, err, unsigned)
	}
	if found, err := w.scope.Find(ctx, ref, spec.PullIfNotPresent); found || err != nil {
		t.Errorf("image that was not verified is found: %t, %v", found, err)
	}
	d := reg.target("shop:1").Digest
	reg.add("shop", sigTag(d), k.Attached(repo, d))
	blobs := reg.count(http.MethodGet, "blobs")
	if _, err := w.scope.Ensure(ctx, ref, spec.PullNever, nil); err != nil {
		t.Fatal(err)
	}
	if n := reg.count(http.MethodGet, "blobs") - blobs; n != 1 {
		t.Errorf("%d blobs were fetched, want the signature", n)
	}
	reg.intercept(hangUp) // the verdict is remembered, without a network
	if _, err := w.scope.Ensure(ctx, ref, spec.PullNever, nil); err != nil {
		t.Error(err)
	}
	if found, err := w.scope.Find(ctx, ref, spec.PullIfNotPresent); !found || err != nil {
		t.Errorf("verified image is found: %t, %v", found, err)
	}
	w.store.SetVerification(signedBy(t, repo, signing.NewKey("ecdsa"))) // it is for the key only
	_, err := w.scope.Ensure(ctx, ref, spec.PullNever, nil)
	wantReason(t, err, image.ReasonPull)
	entries, err := w.store.Catalog(ctx)
	if want := (image.Verification{Required: true}); err != nil || entries[0].Verification != want {
		t.Errorf("%+v, %v", entries, err)
	}
}

// TestPreviousImageIsVerifiedByItsIndex finds the image of a previous run by its manifest after its name was moved.
func TestPreviousImageIsVerified(t *testing.T) {
	k := signing.NewKey("ecdsa")
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "one"))
	ref, repo := reg.host+"/shop:1", reg.host+"/shop"
	first := reg.target("shop:1").Digest
	reg.add("shop", sigTag(first), k.Attached(repo, first))
	ctx, w := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
	img, err := w.scope.Ensure(ctx, ref, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	reg.push(t, sample("shop:1", "two"))
	second := reg.target("shop:1").Digest
	reg.add("shop", sigTag(second), k.Attached(repo, second))
	if _, err := w.store.Keep(ctx, "web", img.ConfigDigest); err != nil {
		t.Fatal(err)
	}
	if _, err := w.scope.Ensure(ctx, ref, spec.PullAlways, nil); err != nil {
		t.Fatal(err)
	}
	reg.intercept(hangUp)
	again, found, err := w.scope.FindAgain(ctx, ref, "", image.Previous{ConfigDigest: img.ConfigDigest})
	if err != nil || !found || again.ConfigDigest != img.ConfigDigest {
		t.Errorf("%+v, %t, %v", again, found, err)
	}
}
