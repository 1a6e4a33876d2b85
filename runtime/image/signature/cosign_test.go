package signature_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image/signature"
)

// golden returns the files of a directory with output of cosign, by name, and the rule for its key.
func golden(t *testing.T, dir string) (map[string]string, signature.Rule) {
	t.Helper()
	files := map[string]string{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name()] = string(data)
	}
	key, err := signature.ParseKey("cosign.pub", []byte(files["cosign.pub"]))
	if err != nil {
		t.Fatal(err)
	}
	return files, signature.Rule{Prefix: "localhost:5197", Type: signature.Signed, Keys: []signature.Key{key}}
}

// TestCosign verifies what cosign itself has written, and refuses it as soon as a byte is changed. The other tests sign by package signing,
// which could share a misunderstanding with the verification.
func TestCosign(t *testing.T) {
	files, rule := golden(t, "testdata/cosign-2.2.4")
	for name, c := range map[string]struct{ file, old, replaced, want string }{
		"as written":        {},
		"payload":           {"payload.json", `"optional":null`, `"optional":{}`, "signed by another key"},
		"digest in payload": {"payload.json", "sha256:6957", "sha256:6958", "signed by another key"},
		"signature":         {"manifest.json", "MEUCIQDG2", "MEUCIQDG3", "signed by another key"},
		"image":             {"index.json", "arm64", "arm65", "signature is for"},
		"key": {
			"cosign.pub", "DbKmxhAkhM5l0dJ3D8J102lbZQs7\nB22Ig8EUOJUpKBlahSm1P8XIngGlT/+SftbNmJXONqpGZK0R3ySoSH0/4w==",
			"", "not a public key",
		},
	} {
		changed := maps.Clone(files)
		if c.file != "" {
			if !strings.Contains(changed[c.file], c.old) {
				t.Fatalf("%s: %s lacks %q", name, c.file, c.old)
			}
			changed[c.file] = strings.Replace(changed[c.file], c.old, c.replaced, 1)
		}
		err := verifyCosign(changed, rule)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// verifyCosign verifies the layer of the manifest, and the output of cosign download signature.
func verifyCosign(files map[string]string, rule signature.Rule) error {
	key, err := signature.ParseKey("cosign.pub", []byte(files["cosign.pub"]))
	if err != nil {
		return err
	}
	rule.Keys = []signature.Key{key}
	var manifest ocispec.Manifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &manifest); err != nil {
		return err
	}
	s := &signature.Subject{
		Repository: "localhost:5197/shop", Digest: digest.FromString(files["index.json"]), Content: []byte(files["index.json"]),
	}
	attached := signature.Signature{
		Payload: []byte(files["payload.json"]), Base64: manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"],
	}
	if _, err := rule.Verify(s, []signature.Signature{attached}); err != nil {
		return err
	}
	downloaded, err := signature.Parse([]byte(files["download.json"]))
	if err != nil {
		return err
	}
	_, err = rule.Verify(s, downloaded)
	return err
}

// TestCosignBundle is TestCosign for the bundles of version 3.
func TestCosignBundle(t *testing.T) {
	files, rule := golden(t, "testdata/cosign-3.1.3")
	var referrers ocispec.Index
	var manifest ocispec.Manifest
	for name, into := range map[string]any{"referrers.json": &referrers, "manifest.json": &manifest} {
		if err := json.Unmarshal([]byte(files[name]), into); err != nil {
			t.Fatal(err)
		}
	}
	subject, layer := digest.FromString(files["index.json"]), manifest.Layers[0]
	if referrers.Manifests[0].Digest != digest.FromString(files["manifest.json"]) || manifest.Subject.Digest != subject ||
		layer.Digest != digest.FromString(files["bundle.json"]) ||
		!strings.HasPrefix(referrers.Manifests[0].ArtifactType, signature.BundleType) ||
		!strings.HasPrefix(layer.MediaType, signature.BundleType) {
		t.Fatalf("referrers %+v, manifest %+v", referrers, manifest)
	}
	for name, c := range map[string]struct{ old, replaced, want string }{
		"as written": {},
		"signature":  {`"sig":"MEQCIFF5`, `"sig":"MEQCIFF6`, "signed by another key"},
		"statement":  {`"payload":"eyJfdHlwZSI6`, `"payload":"eyJfdHlwZSI7`, "signed by another key"},
		"media type": {signature.BundleType, "application/json", "its media type is"},
	} {
		for _, file := range []string{"bundle.json", "download.json"} {
			if !strings.Contains(files[file], c.old) {
				t.Fatalf("%s: %s lacks %q", name, file, c.old)
			}
			list := []signature.Signature{{Bundle: []byte(strings.Replace(files[file], c.old, c.replaced, 1))}}
			if file == "download.json" {
				var err error
				if list, err = signature.Parse(list[0].Bundle); err != nil && c.want == "" {
					t.Fatal(err)
				}
			}
			if len(list) == 0 {
				continue // refused when it is read
			}
			_, err := rule.Verify(&signature.Subject{
				Repository: "localhost:5197/shop", Digest: subject, Content: []byte(files["index.json"]),
			},
				list)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s in %s: %v, want %q", name, file, err, c.want)
			}
		}
	}
	other := &signature.Subject{Repository: "localhost:5197/shop", Digest: digest.FromString("another image")}
	if _, err := rule.Verify(other, []signature.Signature{{Bundle: []byte(files["bundle.json"])}}); !signature.Refused(err) ||
		!strings.Contains(err.Error(), "signature is for") {
		t.Error(err)
	}
}

// TestCosignIsForItsRepository: the key of a repository may sign others too.
func TestCosignIsForItsRepository(t *testing.T) {
	files, rule := golden(t, "testdata/cosign-2.2.4")
	list, err := signature.Parse([]byte(files["download.json"]))
	if err != nil || len(list) != 1 {
		t.Fatalf("%d signatures, %v", len(list), err)
	}
	s := &signature.Subject{Repository: "localhost:5197/other", Digest: digest.FromString(files["index.json"])}
	if _, err := rule.Verify(s, list); !signature.Refused(err) ||
		!strings.Contains(err.Error(), `for repository "localhost:5197/shop", not "localhost:5197/other"`) {
		t.Error(err)
	}
}
