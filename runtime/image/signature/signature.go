package signature

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
)

// Limits of what a caller may pass to [Rule.Verify].
const (
	MaxSignatures = 128       // of one image
	MaxPayload    = 64 << 10  // bytes of a payload of simple signing
	MaxBundle     = 256 << 10 // bytes of a bundle
)

// Signature is a signature of an image. It has a payload with its signature, or a bundle.
type Signature struct {
	// Payload is cosign's simple signing document, and Base64 the signature of it.
	Payload []byte
	Base64  string
	// Bundle is a sigstore bundle in JSON.
	Bundle []byte
}

// Subject is an image that must be signed.
type Subject struct {
	// Repository is the name of the image without tag and digest.
	Repository string
	// Digest is that of an index or a manifest.
	Digest digest.Digest
	// Content is the index or manifest.
	Content []byte
}

// Error says why an image is refused.
type Error struct {
	Rule  Rule
	Cause string
}

func (e *Error) Error() string {
	if e.Rule.Type == Reject {
		return e.Rule.String() + " rejects the image"
	}
	return fmt.Sprintf("%s requires a signature by %s: %s", e.Rule.String(), e.Rule.keyNames(), e.Cause)
}

// Refused reports whether an image was refused by a policy.
func Refused(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Refuse returns an [*Error].
func (r *Rule) Refuse(format string, args ...any) error {
	return &Error{Rule: *r, Cause: fmt.Sprintf(format, args...)}
}

// errOtherKey is the error of a signature that none of the keys has made.
var errOtherKey = errors.New("signed by another key")

// Verify returns the key that has signed the subject. One valid signature is enough: others may be for other keys or damaged. The error is
// an [*Error] with the cause for the person who is likely to have made a mistake.
func (r *Rule) Verify(subject *Subject, signatures []Signature) (Key, error) {
	if len(signatures) == 0 {
		return Key{}, r.Refuse("no signature of %s found", subject.Digest)
	}
	if len(signatures) > MaxSignatures {
		return Key{}, r.Refuse("%s has more than %d signatures", subject.Digest, MaxSignatures)
	}
	var cause error
	for i := range signatures {
		key, err := r.verify(subject, &signatures[i])
		if err == nil {
			return key, nil
		}
		if cause == nil || errors.Is(cause, errOtherKey) { // any other cause says more
			cause = err
		}
	}
	if errors.Is(cause, errOtherKey) {
		return Key{}, r.Refuse("%s is signed by another key", subject.Digest)
	}
	return Key{}, r.Refuse("%v", cause)
}

func (r *Rule) verify(subject *Subject, s *Signature) (Key, error) {
	if s.Bundle != nil {
		return r.verifyBundle(subject, s.Bundle)
	}
	return r.verifySimple(subject, s)
}

// signer returns the key that has signed a message.
func (r *Rule) signer(message, sig []byte) (Key, error) {
	for _, k := range r.Keys {
		if k.verifier.VerifySignature(bytes.NewReader(sig), bytes.NewReader(message)) == nil {
			return k, nil
		}
	}
	return Key{}, errOtherKey
}
