package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	bundlev1 "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	// BundleType starts the media types of sigstore bundles, which end with a version.
	BundleType = "application/vnd.dev.sigstore.bundle"
	// SignPredicate is the type of the statement that signs an image. Attestations, such as SBOMs, have others: they say something about an
	// image, but not that it may run.
	SignPredicate = "https://sigstore.dev/cosign/sign/v1"

	statementType = "application/vnd.in-toto+json"
)

// statement is an in-toto statement.
type statement struct {
	Type          string `json:"_type"`
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

// verifyBundle verifies a sigstore bundle: a statement about the digest in a DSSE envelope, as cosign sign writes it, or the signature of
// the manifest itself, as cosign sign-blob writes it. The bundle's transparency log entries and its key hint are not considered.
func (r *Rule) verifyBundle(subject *Subject, data []byte) (Key, error) {
	if len(data) > MaxBundle {
		return Key{}, fmt.Errorf("bundle is malformed: it has more than %d bytes", MaxBundle)
	}
	var b bundlev1.Bundle
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &b); err != nil {
		return Key{}, fmt.Errorf("bundle is malformed: %s", plain(err))
	}
	if !strings.HasPrefix(b.GetMediaType(), BundleType) {
		return Key{}, fmt.Errorf("bundle is malformed: its media type is %q", b.GetMediaType())
	}
	if m := b.GetMessageSignature(); m != nil {
		key, err := r.signer(subject.Content, m.GetSignature())
		return key, byCertificate(&b, err)
	}
	envelope := b.GetDsseEnvelope()
	if envelope == nil {
		return Key{}, errors.New("bundle is malformed: it has neither a DSSE envelope nor a message signature")
	}
	if envelope.GetPayloadType() != statementType {
		return Key{}, fmt.Errorf("bundle is malformed: its payload type is %q", envelope.GetPayloadType())
	}
	key, err := Key{}, errOtherKey
	message := dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload())
	for _, s := range envelope.GetSignatures()[:min(len(envelope.GetSignatures()), MaxSignatures)] {
		if key, err = r.signer(message, s.GetSig()); err == nil {
			break
		}
	}
	if err != nil {
		return Key{}, byCertificate(&b, err)
	}
	return key, covers(envelope.GetPayload(), subject)
}

// covers checks that a statement signs a subject.
func covers(data []byte, subject *Subject) error {
	var s statement
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("bundle is malformed: decode statement: %w", err)
	}
	if s.PredicateType != SignPredicate {
		return fmt.Errorf("bundle is an attestation (%s), not a signature", shortened(s.PredicateType))
	}
	var others []string
	for _, signed := range s.Subject {
		hex := signed.Digest[subject.Digest.Algorithm().String()]
		if hex == subject.Digest.Encoded() {
			return nil
		}
		others = append(others, hex)
	}
	return fmt.Errorf("signature is for %q, the image has the digest %s", shortened(strings.Join(others, " ")), subject.Digest)
}

// byCertificate explains that a keyless signature is not considered.
func byCertificate(b *bundlev1.Bundle, err error) error {
	m := b.GetVerificationMaterial()
	if err != nil && (m.GetCertificate() != nil || m.GetX509CertificateChain() != nil) {
		return errors.New("bundle is signed with a certificate, only keys are supported")
	}
	return err
}

// plain replaces the special spaces that protojson puts into its errors.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "\u00a0", " ") }
