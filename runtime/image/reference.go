package image

import (
	"fmt"

	"github.com/distribution/reference"
)

// parse returns the full name of an image: busybox becomes docker.io/library/busybox:latest. A tag before a digest is dropped, because the
// digest decides. The error is an *Error.
func parse(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", &Error{
			Reason: ReasonInvalidName, Err: err,
			Message: fmt.Sprintf("parse image name %q: %v", ref, err),
		}
	}
	return named.String(), nil
}

// repository returns a full name without its tag or digest, and the digest, if any.
func repository(name string) (repo, digest string) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", ""
	}
	if d, ok := named.(reference.Digested); ok {
		digest = d.Digest().String()
	}
	return named.Name(), digest
}
