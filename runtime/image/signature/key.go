package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/podstead/podstead/spec"
)

// maxKey is the maximum size of a file with a key.
const maxKey = 64 << 10

// Key is a public key: ECDSA on a NIST curve, Ed25519, or RSA with at least 2048 bits.
type Key struct {
	// Name is the path of its file.
	Name string
	// ID is the SHA-256 digest of the key in hexadecimal digits. It does not depend on the file.
	ID string

	verifier signature.Verifier
}

// LoadKey reads a public key in PEM format.
func LoadKey(path string) (Key, error) {
	data, _, err := spec.ReadFile(path, maxKey)
	if err != nil {
		return Key{}, err
	}
	return ParseKey(path, data)
}

// ParseKey returns a public key in PEM format.
func ParseKey(name string, data []byte) (Key, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return Key{}, errors.New("not a public key in PEM format")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return Key{}, errors.New("has more than one key, write one to each file")
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(data)
	if err != nil {
		return Key{}, fmt.Errorf("not a public key in PEM format: %w", err)
	}
	if err := checkStrength(public); err != nil {
		return Key{}, err
	}
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return Key{}, err
	}
	der, err := cryptoutils.MarshalPublicKeyToDER(public)
	if err != nil {
		return Key{}, err
	}
	sum := sha256.Sum256(der)
	return Key{Name: name, ID: hex.EncodeToString(sum[:]), verifier: verifier}, nil
}

// checkStrength refuses kinds of keys that cosign does not use.
func checkStrength(public crypto.PublicKey) error {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		if bits := k.Curve.Params().BitSize; bits < 256 {
			return fmt.Errorf("ECDSA key with %d bits, at least 256 are required", bits)
		}
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < 2048 {
			return fmt.Errorf("RSA key with %d bits, at least 2048 are required", bits)
		}
	case ed25519.PublicKey:
	default:
		return fmt.Errorf("key of type %T is not supported, use ECDSA, Ed25519 or RSA", public)
	}
	return nil
}
