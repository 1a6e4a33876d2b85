// Package signing makes keys, and signatures of images as cosign writes them, for tests.
package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// The types that cosign writes.
const (
	SimpleType    = "application/vnd.dev.cosign.simplesigning.v1+json"
	BundleType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
	Annotation    = "dev.cosignproject.cosign/signature"
	SignPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// Key is a key pair.
type Key struct {
	// Public is the public key in PEM format.
	Public []byte

	signer signature.Signer
}

// NewKey returns a new key: ecdsa, ed25519 or rsa.
func NewKey(kind string) Key {
	var private crypto.Signer
	var err error
	switch kind {
	case "ecdsa":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		panic("no such kind of keys: " + kind)
	}
	must(err)
	k := Key{}
	k.signer, err = signature.LoadSigner(private, crypto.SHA256)
	must(err)
	k.Public, err = cryptoutils.MarshalPublicKeyToPEM(private.Public())
	must(err)
	return k
}

// Sign returns the signature of a message.
func (k Key) Sign(message []byte) []byte {
	sig, err := k.signer.SignMessage(bytes.NewReader(message))
	must(err)
	return sig
}

// Payload is the document of simple signing, byte for byte as cosign writes it.
func Payload(repository string, d digest.Digest) []byte {
	return fmt.Appendf(nil,
		`{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image `+
			`signature"},"optional":null}`,
		repository, d)
}

// Simple returns a payload and its signature in base64.
func (k Key) Simple(repository string, d digest.Digest) (payload []byte, sig string) {
	payload = Payload(repository, d)
	return payload, base64.StdEncoding.EncodeToString(k.Sign(payload))
}

// Bundle returns a sigstore bundle with a statement of a type about a digest.
func (k Key) Bundle(predicateType string, d digest.Digest) []byte {
	const payloadType = "application/vnd.in-toto+json"
	payload := marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType, "predicate": map[string]any{},
		"subject": []any{map[string]any{"digest": map[string]string{d.Algorithm().String(): d.Encoded()}}},
	})
	return marshal(map[string]any{
		"mediaType":            BundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "a2V5"}, "tlogEntries": []any{}},
		"dsseEnvelope": map[string]any{
			"payload": payload, "payloadType": payloadType,
			"signatures": []any{map[string]any{"sig": k.Sign(dsse.PAE(payloadType, payload))}},
		},
	})
}

// MessageBundle returns a bundle with the signature of a manifest, as cosign sign-blob writes it.
func (k Key) MessageBundle(manifest []byte) []byte {
	sum256 := sha256.Sum256(manifest)
	return marshal(map[string]any{
		"mediaType":            BundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "a2V5"}},
		"messageSignature": map[string]any{
			"messageDigest": map[string]any{"algorithm": "SHA2_256", "digest": sum256[:]}, "signature": k.Sign(manifest),
		},
	})
}

// Artifact is a manifest in a registry, with its blobs.
type Artifact struct {
	Manifest   []byte
	Descriptor ocispec.Descriptor
	Blobs      map[digest.Digest][]byte
}

// Layer is a layer of an [Artifact].
type Layer struct {
	MediaType   string
	Data        []byte
	Annotations map[string]string
}

// NewArtifact returns a manifest with layers, which refers to a subject if that is not nil.
func NewArtifact(artifactType string, subject *ocispec.Descriptor, layers ...Layer) Artifact {
	a := Artifact{Blobs: map[digest.Digest][]byte{ocispec.DescriptorEmptyJSON.Digest: []byte("{}")}}
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
		Config: ocispec.DescriptorEmptyJSON, Layers: []ocispec.Descriptor{}, Subject: subject,
	}
	m.Config.Data = nil
	for _, l := range layers {
		d := ocispec.Descriptor{
			MediaType: l.MediaType, Digest: digest.FromBytes(l.Data), Size: int64(len(l.Data)), Annotations: l.Annotations,
		}
		a.Blobs[d.Digest] = l.Data
		m.Layers = append(m.Layers, d)
	}
	a.Manifest = marshal(m)
	a.Descriptor = ocispec.Descriptor{
		MediaType: m.MediaType, ArtifactType: artifactType, Digest: digest.FromBytes(a.Manifest), Size: int64(len(a.Manifest)),
	}
	return a
}

// Attached returns what cosign stores at the tag sha256-HEX.sig.
func (k Key) Attached(repository string, d digest.Digest) Artifact {
	payload, sig := k.Simple(repository, d)
	return NewArtifact("", nil, Layer{SimpleType, payload, map[string]string{Annotation: sig}})
}

// Referrer returns what cosign stores as a referrer of an image.
func (k Key) Referrer(predicateType string, subject ocispec.Descriptor) Artifact {
	subject = ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	a := NewArtifact(BundleType, &subject, Layer{BundleType, k.Bundle(predicateType, subject.Digest), nil})
	a.Descriptor.Annotations = map[string]string{"dev.sigstore.bundle.predicateType": predicateType}
	return a
}

// Index returns an index of manifests.
func Index(list ...ocispec.Descriptor) Artifact {
	data := marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: list})
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(data), Size: int64(len(data))}
	return Artifact{Manifest: data, Descriptor: d}
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	must(err)
	return data
}

// must panics: keys and documents of tests are valid.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
