package signature

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// verifySimple verifies cosign's simple signing, see containers-signature(5). The signed document must name the digest, and a reference in
// the same repository: a key may sign several repositories, and a registry could offer one image under the name of another.
func (r *Rule) verifySimple(subject *Subject, s *Signature) (Key, error) {
	if len(s.Payload) > MaxPayload {
		return Key{}, fmt.Errorf("signature is malformed: its payload has more than %d bytes", MaxPayload)
	}
	sig, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s.Base64))
	if err != nil || len(sig) == 0 {
		return Key{}, fmt.Errorf("signature is malformed: %q is not base64", shortened(s.Base64))
	}
	key, err := r.signer(s.Payload, sig)
	if err != nil {
		return Key{}, err
	}
	var p payload.SimpleContainerImage
	if err := json.Unmarshal(s.Payload, &p); err != nil {
		return Key{}, fmt.Errorf("signature is malformed: decode payload: %w", err)
	}
	if p.Critical.Type != payload.CosignSignatureType {
		return Key{}, fmt.Errorf("signature is malformed: its type is %q", p.Critical.Type)
	}
	if got := p.Critical.Image.DockerManifestDigest; got != subject.Digest.String() {
		return Key{}, fmt.Errorf("signature is for %q, the image has the digest %s", got, subject.Digest)
	}
	signed, err := reference.ParseNormalizedNamed(p.Critical.Identity.DockerReference)
	if err != nil {
		return Key{}, fmt.Errorf("signature is malformed: docker-reference %q: %w", p.Critical.Identity.DockerReference, err)
	}
	if got := repositoryOf(signed); got != subject.Repository {
		return Key{}, fmt.Errorf("signature is for repository %q, not %q", got, subject.Repository)
	}
	return key, nil
}

// repositoryOf returns a repository without the other name of Docker Hub, which cosign writes.
func repositoryOf(named reference.Named) string {
	return strings.Replace(named.Name(), "index.docker.io/", "docker.io/", 1)
}

// shortened returns the start of a text that may be long.
func shortened(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
