package api

import (
	"fmt"
	"path/filepath"
	"time"
)

// What the client and the daemon agree on, beside the types.
const (
	// CallTimeout bounds a request that is not a stream.
	CallTimeout = time.Minute
	// RemovalTimeout is the same for the removal of images, which deletes files from the disk.
	RemovalTimeout = 15 * time.Minute
	// LoginTimeout is the same for a login, which asks a registry and may run a credential helper.
	LoginTimeout = 2 * time.Minute
	// CopyTrailer is the trailer of a response with files: a [CopyEnd] as JSON. A response without it is incomplete.
	CopyTrailer = "Podstead-Copy"
	// TarContent is the content type of files of containers.
	TarContent = "application/x-tar"
	// MaxSignatures is the maximum size of all signatures in a request to import images, see [JoinSignatures].
	MaxSignatures = 8 << 20
	// SignatureBytes is the parameter with the size of the signatures before an archive.
	SignatureBytes = "signatureBytes"
)

// IncompleteHeader is the header of a response whose session has only the newest part of the output from the start.
const IncompleteHeader = "Podstead-Incomplete"

// InstanceHeader is the header with the instance that the sequence numbers of events belong to.
const InstanceHeader = "Podstead-Instance"

// These begin the messages about what the daemon does not have. Clients read them, and explain that the daemon is older than they are.
const (
	UnknownEndpoint  = "unknown endpoint "
	UnknownParameter = "unknown parameter "
)

// maxSocketPath is the maximum length of a path: sun_path of unix(7) has 108 bytes, less the final zero and the suffix of the temporary
// name.
const maxSocketPath = 106

// CheckSocket validates the path of the daemon's socket.
func CheckSocket(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("socket %q: must be an absolute path", path)
	case len(path) > maxSocketPath:
		return fmt.Errorf("socket %s: path too long: must be at most %d bytes, has %d", path, maxSocketPath, len(path))
	}
	return nil
}
