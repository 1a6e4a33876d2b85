package image_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/ocitar"
	"github.com/podstead/podstead/test/signing"
)

func TestArchiveIsVerified(t *testing.T) {
	t.Parallel()
	k, stranger := signing.NewKey("ecdsa"), signing.NewKey("ed25519")
	const repo = "registry.example.com/shop"
	img := sample(repo+":1", "one")
	plain := save(t, img)
	ctx, w := newEnv(t, image.Options{})
	list, err := w.load(ctx, plain)
	if err != nil {
		t.Fatal(err)
	}
	target := list[0].Target
	payload, sig := k.Simple(repo, target.Digest)
	for name, c := range map[string]struct {
		inside []signing.Artifact
		beside map[string]string
		want   string
	}{
		"none":          {nil, nil, "no signature of " + target.Digest.String()},
		"bundle beside": {nil, map[string]string{".sigstore.json": string(k.Bundle(signing.SignPredicate, target.Digest))}, ""},
		"pair beside":   {nil, map[string]string{".sig": sig, ".payload": string(payload)}, ""},
		"bundle of another key": {
			nil,
			map[string]string{".sigstore.json": string(stranger.Bundle(signing.SignPredicate, target.Digest))},
			"signed by another key",
		},
		"malformed":                 {nil, map[string]string{".sigstore.json": "{"}, "malformed"},
		"simple signing inside":     {[]signing.Artifact{k.Attached(repo, target.Digest)}, nil, ""},
		"referrer inside":           {[]signing.Artifact{k.Referrer(signing.SignPredicate, target)}, nil, ""},
		"of another key inside":     {[]signing.Artifact{stranger.Attached(repo, target.Digest)}, nil, "signed by another key"},
		"of another digest inside":  {[]signing.Artifact{k.Attached(repo, digest.FromString("x"))}, nil, "signature is for"},
		"inside for another domain": {[]signing.Artifact{k.Attached("evil.example.com/shop", target.Digest)}, nil, "is for repository"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "shop.tar")
			if err := os.WriteFile(archive, withArtifacts(t, plain, c.inside...), 0o600); err != nil {
				t.Fatal(err)
			}
			for suffix, data := range c.beside {
				if err := os.WriteFile(archive+suffix, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, w := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
			_, err := w.load(ctx, archive)
			if c.want != "" {
				wantReason(t, err, unsigned)
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				nothingUnpacked(ctx, t, w)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.scope.Ensure(ctx, repo+":1", spec.PullNever, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestArchiveIsVerifiedAgain turns the policy on after an archive was imported.
func TestArchiveIsVerifiedAgain(t *testing.T) {
	k := signing.NewKey("ecdsa")
	const repo = "registry.example.com/shop"
	archive := save(t, sample(repo+":1", "one"))
	ctx, w := newEnv(t, image.Options{})
	list, err := w.load(ctx, archive)
	if err != nil {
		t.Fatal(err)
	}
	w.store.SetVerification(signedBy(t, repo, k))
	_, err = w.scope.Ensure(ctx, repo+":1", "", nil)
	wantReason(t, err, unsigned)
	_, err = w.load(ctx, archive)
	wantReason(t, err, unsigned)
	if err := os.WriteFile(archive+".sigstore.json", k.Bundle(signing.SignPredicate, list[0].Target.Digest), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = w.load(ctx, archive); err != nil {
		t.Fatal(err)
	}
	if _, err = w.scope.Ensure(ctx, repo+":1", "", nil); err != nil {
		t.Error(err)
	}
}

func TestImportByHandIsVerified(t *testing.T) {
	k := signing.NewKey("ecdsa")
	const repo = "registry.example.com/shop"
	data, err := os.ReadFile(save(t, sample(repo+":1", "one")))
	if err != nil {
		t.Fatal(err)
	}
	ctx, w := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
	_, err = w.store.Import(ctx, strings.NewReader(string(data)), true)
	wantReason(t, err, unsigned)
	nothingUnpacked(ctx, t, w)
	_, refused, _ := strings.Cut(err.Error(), "no signature of ")
	d := digest.Digest(strings.Fields(refused)[0])
	if _, err := w.store.Import(ctx, strings.NewReader(string(data)), true,
		signature.Signature{Bundle: k.Bundle(signing.SignPredicate, d)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.scope.Ensure(ctx, repo+":1", spec.PullNever, nil); err != nil {
		t.Error(err)
	}
}

// withArtifacts returns an archive with signatures in its index, which have no names there.
func withArtifacts(t *testing.T, archive string, list ...signing.Artifact) []byte {
	t.Helper()
	files := unpack(t, archive)
	var idx ocispec.Index
	if err := json.Unmarshal(files["index.json"], &idx); err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		idx.Manifests = append(idx.Manifests, a.Descriptor)
		files["blobs/sha256/"+a.Descriptor.Digest.Encoded()] = a.Manifest
		for d, data := range a.Blobs {
			files["blobs/sha256/"+d.Encoded()] = data
		}
	}
	var err error
	if files["index.json"], err = json.Marshal(idx); err != nil {
		t.Fatal(err)
	}
	var buf strings.Builder
	if err := ocitar.WriteFiles(&buf, files); err != nil {
		t.Fatal(err)
	}
	return []byte(buf.String())
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDirFileIsVerified: an archive of an image directory is imported once a signature beside it satisfies the rule.
func TestDirFileIsVerified(t *testing.T) {
	k := signing.NewKey("ecdsa")
	const repo = "registry.example.com/shop"
	path := save(t, sample(repo+":1", "one"))
	ctx, plain := newEnv(t, image.Options{})
	list, err := plain.load(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	bundle := k.Bundle(signing.SignPredicate, list[0].Target.Digest)
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".sigstore.json", bundle, 0o600); err != nil { // of no archive
		t.Fatal(err)
	}
	ctx, w := newEnv(t, image.Options{Verification: signedBy(t, repo, k)})
	load := func(origin string) error {
		f := dirFile(path, origin)
		w.store.SetFiles([]image.DirFile{f})
		_, _, err := w.store.ImportDirFile(ctx, f, func() (io.ReadCloser, error) { return os.Open(path) })
		return err
	}
	wantReason(t, load("a"), unsigned)
	nothingUnpacked(ctx, t, w)
	if err := os.WriteFile(path+".sigstore.json", bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := load("b"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.In().Ensure(ctx, repo+":1", spec.PullNever, nil); err != nil {
		t.Error(err)
	}
}
