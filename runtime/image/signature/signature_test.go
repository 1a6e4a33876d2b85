package signature_test

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/test/signing"
)

const repo = "registry.example.com/shop/web"

var (
	manifest = []byte(`{"schemaVersion":2}`)
	signed   = digest.FromBytes(manifest)
	other    = digest.FromString("other")
)

func parse(t *testing.T, k signing.Key) signature.Key {
	t.Helper()
	key, err := signature.ParseKey("/etc/podstead/keys/shop.pub", k.Public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func simple(payload []byte, sig string) signature.Signature {
	return signature.Signature{Payload: payload, Base64: sig}
}

func bundle(data []byte) signature.Signature { return signature.Signature{Bundle: data} }

func subject() *signature.Subject {
	return &signature.Subject{Repository: repo, Digest: signed, Content: manifest}
}

func TestVerifyAcceptsEachFormatByEachKind(t *testing.T) {
	for _, kind := range []string{"ecdsa", "ed25519", "rsa"} {
		k, stranger := signing.NewKey(kind), signing.NewKey(kind)
		rule := signature.Rule{
			Prefix: "registry.example.com", Type: signature.Signed, Keys: []signature.Key{parse(t, signing.NewKey("ecdsa")), parse(t, k)},
		}
		for name, list := range map[string][]signature.Signature{
			"simple signing":             {simple(k.Simple(repo, signed))},
			"reference with a tag":       {simple(k.Simple(repo+":1.2", signed))},
			"statement":                  {bundle(k.Bundle(signing.SignPredicate, signed))},
			"message":                    {bundle(k.MessageBundle(manifest))},
			"second signature":           {simple(stranger.Simple(repo, signed)), simple(k.Simple(repo, signed))},
			"beside a malformed one":     {bundle([]byte("{")), simple(k.Simple(repo, signed))},
			"beside that of another tag": {simple(k.Simple(repo, other)), simple(k.Simple(repo, signed))},
			"line break after the base64": {
				simple(signing.Payload(repo, signed), base64.StdEncoding.EncodeToString(k.Sign(signing.Payload(repo, signed)))+"\n"),
			},
		} {
			key, err := rule.Verify(subject(), list)
			if err != nil || key.ID != rule.Keys[1].ID {
				t.Errorf("%s, %s: %v, key %q", kind, name, err, key.ID)
			}
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	k, stranger := signing.NewKey("ecdsa"), signing.NewKey("ecdsa")
	rule := signature.Rule{Prefix: "registry.example.com/shop", Type: signature.Signed, Keys: []signature.Key{parse(t, k)}}
	payload, sig := k.Simple(repo, signed)
	atomic := []byte(strings.Replace(string(payload), "cosign container", "atomic container", 1))
	certificate := []byte(strings.Replace(string(stranger.Bundle(signing.SignPredicate, signed)), `"publicKey":{"hint":"a2V5"}`,
		`"certificate":{"rawBytes":"YQ=="}`, 1))
	many := make([]signature.Signature, signature.MaxSignatures+1)
	for name, c := range map[string]struct {
		list []signature.Signature
		want string
	}{
		"none":              {nil, "no signature of " + signed.String() + " found"},
		"other key, simple": {[]signature.Signature{simple(stranger.Simple(repo, signed))}, "signed by another key"},
		"other key, bundle": {
			[]signature.Signature{bundle(stranger.Bundle(signing.SignPredicate, signed))}, "signed by another key",
		},
		"other key, message":   {[]signature.Signature{bundle(stranger.MessageBundle(manifest))}, "signed by another key"},
		"other message":        {[]signature.Signature{bundle(k.MessageBundle([]byte("{}")))}, "signed by another key"},
		"other digest, simple": {[]signature.Signature{simple(k.Simple(repo, other))}, `signature is for "` + other.String()},
		"other digest, bundle": {
			[]signature.Signature{bundle(k.Bundle(signing.SignPredicate, other))}, `signature is for "` + other.Encoded()[:40],
		},
		"other repository": {
			[]signature.Signature{simple(k.Simple("registry.example.com/other", signed))},
			`for repository "registry.example.com/other", not "` + repo,
		},
		"invalid repository": {[]signature.Signature{simple(k.Simple("A B", signed))}, "malformed: docker-reference"},
		"changed payload":    {[]signature.Signature{simple(append(payload, ' '), sig)}, "signed by another key"},
		"not base64":         {[]signature.Signature{simple(payload, "%%%")}, "not base64"},
		"no base64":          {[]signature.Signature{simple(payload, "")}, "not base64"},
		"other type": {
			[]signature.Signature{simple(atomic, base64.StdEncoding.EncodeToString(k.Sign(atomic)))},
			`its type is "atomic container image signature"`,
		},
		"payload without JSON": {
			[]signature.Signature{simple([]byte("x"), base64.StdEncoding.EncodeToString(k.Sign([]byte("x"))))}, "decode payload",
		},
		"large payload": {[]signature.Signature{simple(make([]byte, signature.MaxPayload+1), sig)}, "more than 65536 bytes"},
		"attestation": {
			[]signature.Signature{bundle(k.Bundle("https://slsa.dev/provenance/v1", signed))},
			"is an attestation (https://slsa.dev/provenance/v1), not a signature",
		},
		"certificate":      {[]signature.Signature{bundle(certificate)}, "only keys are supported"},
		"malformed bundle": {[]signature.Signature{bundle([]byte(`{"mediaType":`))}, "bundle is malformed"},
		"bundle without content": {
			[]signature.Signature{bundle([]byte(`{"mediaType":"` + signing.BundleType + `"}`))}, "neither a DSSE envelope nor",
		},
		"bundle of another type": {[]signature.Signature{bundle([]byte(`{"mediaType":"text/plain"}`))}, `its media type is "text/plain"`},
		"large bundle":           {[]signature.Signature{bundle(make([]byte, signature.MaxBundle+1))}, "more than 262144 bytes"},
		"many signatures":        {many, "more than 128 signatures"},
		"malformed says more":    {[]signature.Signature{simple(stranger.Simple(repo, signed)), simple(payload, "%")}, "not base64"},
		"statement of other bytes": {
			[]signature.Signature{
				bundle([]byte(strings.Replace(string(k.Bundle(signing.SignPredicate, signed)), `"payload":"e`, `"payload":"f`, 1))),
			},
			"signed by another key",
		},
	} {
		_, err := rule.Verify(subject(), c.list)
		if !signature.Refused(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		if start := `images.verify prefix "registry.example.com/shop" requires a signature by ` +
			`/etc/podstead/keys/shop.pub: `; !strings.HasPrefix(err.Error(),
			start) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDockerHubHasTwoNames(t *testing.T) {
	k := signing.NewKey("ecdsa")
	rule := signature.Rule{Prefix: "docker.io", Type: signature.Signed, Keys: []signature.Key{parse(t, k)}}
	s := &signature.Subject{Repository: "docker.io/library/busybox", Digest: signed}
	if _, err := rule.Verify(s, []signature.Signature{simple(k.Simple("index.docker.io/library/busybox", signed))}); err != nil {
		t.Error(err)
	}
}

func TestLongestPrefixDecides(t *testing.T) {
	p := &signature.Policy{Default: signature.Reject, Rules: []signature.Rule{
		{Prefix: "registry.example.com", Type: signature.Signed},
		{Prefix: "registry.example.com/shop/web", Type: signature.Accept},
		{Prefix: "registry.example.com/shop", Type: signature.Reject},
		{Prefix: "registry.example.com:5000/shop", Type: signature.Signed},
	}}
	for repository, want := range map[string]string{
		"registry.example.com/other":         "registry.example.com",
		"registry.example.com/shop":          "registry.example.com/shop",
		"registry.example.com/shop/db":       "registry.example.com/shop",
		"registry.example.com/shop/web":      "registry.example.com/shop/web",
		"registry.example.com/shop/web/a":    "registry.example.com/shop/web",
		"registry.example.com/shop/website":  "registry.example.com/shop",
		"registry.example.com/shopping":      "registry.example.com",
		"registry.example.com:5000/shop/web": "registry.example.com:5000/shop",
		"registry.example.com:5000/other":    "",
		"docker.io/library/nginx":            "",
	} {
		r := p.For(repository)
		if r.Prefix != want || want == "" && r.Type != signature.Reject {
			t.Errorf("%s: %q %s, want %q", repository, r.Prefix, r.Type, want)
		}
	}
	var none *signature.Policy
	if r := none.For("docker.io/library/nginx"); r.Type != signature.Accept {
		t.Errorf("no policy: %s", r.Type)
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	k := signing.NewKey("ecdsa")
	for name, c := range map[string]struct{ data, want string }{
		"good":    {string(k.Public), ""},
		"two":     {string(k.Public) + string(k.Public), "more than one key"},
		"text":    {"hello", "not a public key in PEM format"},
		"private": {"-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n", "not a public key in PEM format"},
		"large":   {strings.Repeat("x", 65<<10), "larger than 65536 bytes"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := signature.LoadKey(path)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := signature.LoadKey(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := signature.LoadKey(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
}

func TestFilesBesideAnArchive(t *testing.T) {
	k := signing.NewKey("ecdsa")
	rule := signature.Rule{Prefix: "registry.example.com", Type: signature.Signed, Keys: []signature.Key{parse(t, k)}}
	payload, sig := k.Simple(repo, signed)
	encoded, err := (&signature.Signature{Payload: payload, Base64: sig}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	attested := string(k.Bundle(signing.SignPredicate, signed))
	for name, c := range map[string]struct {
		files map[string]string
		want  string // empty: verified
	}{
		"bundle":             {map[string]string{".sigstore.json": attested}, ""},
		"two bundles":        {map[string]string{".sigstore.json": string(k.Bundle(signing.SignPredicate, other)) + "\n" + attested}, ""},
		"downloaded":         {map[string]string{".sigstore.json": encoded + "\n"}, ""},
		"pair":               {map[string]string{".sig": sig + "\n", ".payload": string(payload)}, ""},
		"none":               {nil, "no signature"},
		"without payload":    {map[string]string{".sig": sig}, ".payload is missing"},
		"not JSON":           {map[string]string{".sigstore.json": "x"}, "signature 1 is malformed"},
		"neither":            {map[string]string{".sigstore.json": attested + "{}"}, "signature 2 is malformed: neither"},
		"bad payload":        {map[string]string{".sigstore.json": `{"Base64Signature":"YQ==","Payload":"%"}`}, "payload: illegal base64"},
		"too many":           {map[string]string{".sigstore.json": strings.Repeat(`{"mediaType":"x"}`, 129)}, "more than 128 signatures"},
		"too large":          {map[string]string{".sigstore.json": strings.Repeat(" ", 5<<20)}, "larger than 4194304 bytes"},
		"payload is a large": {map[string]string{".sig": sig, ".payload": strings.Repeat(" ", 5<<20)}, "larger than 4194304 bytes"},
	} {
		archive := filepath.Join(t.TempDir(), "shop.tar")
		for suffix, data := range c.files {
			if err := os.WriteFile(archive+suffix, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list, err := signature.Beside(archive)
		if err == nil {
			_, err = rule.Verify(subject(), list)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	k := signing.NewKey("ecdsa")
	key, err := signature.ParseKey("key", k.Public)
	if err != nil {
		f.Fatal(err)
	}
	rule := signature.Rule{Prefix: "registry.example.com", Type: signature.Signed, Keys: []signature.Key{key}}
	f.Add(k.Bundle(signing.SignPredicate, other), "YQ==")
	payload, sig := k.Simple(repo, other)
	f.Add(payload, sig)
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":{"signatures":[{}]}}`), "YQ==")
	f.Fuzz(func(t *testing.T, data []byte, sig string) {
		for _, s := range []signature.Signature{{Bundle: data}, {Payload: data, Base64: sig}} {
			if _, err := rule.Verify(subject(), []signature.Signature{s}); !signature.Refused(err) {
				t.Errorf("%+v: %v", s, err)
			}
		}
		_, _ = signature.Parse(data)
	})
}

// TestFilesBesideNothing: an archive without a path has no signatures in the working directory.
func TestFilesBesideNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".sigstore.json", []byte("malformed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := signature.Beside(""); err != nil || len(list) > 0 {
		t.Errorf("%d signatures, %v; want none", len(list), err)
	}
}
