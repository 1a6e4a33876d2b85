package image

import (
	"fmt"

	"github.com/distribution/reference"
)

// parse returns the full name of an image and the tag it was requested with: busybox becomes docker.io/library/busybox:latest. A
// reference with a digest has no tag. A tag before the digest is dropped, because the digest decides. The error is an *Error.
func parse(ref string) (name, tag string, err error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", "", &Error{
			Reason: ReasonInvalidName, Err: err,
			Message: fmt.Sprintf("parse image name %q: %v", ref, err),
		}
	}
	if t, ok := named.(reference.Tagged); ok {
		tag = t.Tag()
	}
	return named.String(), tag, nil
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
