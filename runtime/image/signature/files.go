package signature

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/podstead/podstead/spec"
)

// The names of the files beside an archive are that of the archive with one of these.
const (
	bundleSuffix  = ".sigstore.json" // bundles, and lines of cosign download signature
	sigSuffix     = ".sig"           // base64, of cosign sign --output-signature
	payloadSuffix = ".payload"       // of cosign sign --output-payload
)

// Suffixes are the ends of the names of all files with signatures beside an archive.
func Suffixes() []string { return []string{bundleSuffix, sigSuffix, payloadSuffix} }

// maxFile is the maximum size of a file with signatures.
const maxFile = 4 << 20

// Beside returns the signatures in the files beside an archive or a directory; none if there are no such files.
func Beside(path string) ([]Signature, error) {
	path = strings.TrimRight(path, "/")
	if path == "" {
		return nil, nil
	}
	var list []Signature
	data, err := read(path + bundleSuffix)
	if err != nil {
		return nil, err
	}
	if list, err = Parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path+bundleSuffix, err)
	}
	sig, err := read(path + sigSuffix)
	if err != nil || sig == nil {
		return list, err
	}
	payload, err := read(path + payloadSuffix)
	if err != nil {
		return nil, err
	}
	if payload == nil {
		return nil, fmt.Errorf("%s: %s is missing", path+sigSuffix, path+payloadSuffix)
	}
	return append(list, Signature{Payload: payload, Base64: string(sig)}), nil
}

// read reads a file; nil if there is none.
func read(path string) ([]byte, error) {
	data, _, err := spec.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// document is a JSON value of [Parse]: a bundle, or a signature as cosign download signature prints it.
type document struct {
	MediaType       string
	Base64Signature string
	Payload         string
}

// Parse returns the signatures in a sequence of JSON values: sigstore bundles, and lines of cosign download signature.
func Parse(data []byte) ([]Signature, error) {
	var list []Signature
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("signature %d is malformed: %w", len(list)+1, err)
		}
		if len(list) == MaxSignatures {
			return nil, fmt.Errorf("has more than %d signatures", MaxSignatures)
		}
		s, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("signature %d is malformed: %w", len(list)+1, err)
		}
		list = append(list, s)
	}
}

func decode(raw json.RawMessage) (Signature, error) {
	var v document
	if err := json.Unmarshal(raw, &v); err != nil {
		return Signature{}, err
	}
	switch {
	case v.MediaType != "":
		return Signature{Bundle: raw}, nil
	case v.Base64Signature == "" || v.Payload == "":
		return Signature{}, errors.New("neither a sigstore bundle nor a signature with Base64Signature and Payload")
	}
	payload, err := base64.StdEncoding.DecodeString(v.Payload)
	if err != nil {
		return Signature{}, fmt.Errorf("payload: %w", err)
	}
	return Signature{Payload: payload, Base64: v.Base64Signature}, nil
}

// Encode is the reverse of [Parse] for one signature.
func (s *Signature) Encode() (string, error) {
	if s.Bundle != nil {
		return string(s.Bundle), nil
	}
	data, err := json.Marshal(document{Base64Signature: strings.TrimSpace(s.Base64), Payload: base64.StdEncoding.EncodeToString(s.Payload)})
	return string(data), err
}
