package spec

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxFileName is the maximum length of a [FileName]. It leaves room for a
// UID or an extension, and for the prefix and suffix of a temporary file: a file
// name has at most 255 bytes (NAME_MAX), the name of a pod up to 253.
const maxFileName = 200

// FileName returns the name for the files and directories of a pod: the name of
// the pod or, if it is long, the start of the name and a digest.
func FileName(pod string) string {
	if len(pod) <= maxFileName {
		return pod
	}
	sum := sha256.Sum256([]byte(pod))
	digest := "~" + hex.EncodeToString(sum[:8]) // not the name of another pod: names do not contain "~"
	return pod[:maxFileName-len(digest)] + digest
}
