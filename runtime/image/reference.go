package image

import (
	"fmt"

	"github.com/distribution/reference"
)

// parse gives the full name of an image and the tag that it was asked by:
// "busybox" becomes docker.io/library/busybox:latest. A reference by digest has
// no tag, and one that is written beside the digest is dropped, since the
// digest decides. The error is an *Error.
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

// repository gives a full name without its tag or digest, and the digest where
// it has one.
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
