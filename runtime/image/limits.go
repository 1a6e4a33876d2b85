package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Limits of what is read into memory, and of the shape of an image. docs/security.md lists them.
const (
	maxDocument  = 8 << 20  // bytes of an index, a manifest or a configuration
	maxDocuments = 64 << 20 // bytes of all of them in one image or archive
	maxValues    = 1 << 17  // values and names in one of them; a value of 3 bytes can take 200 in memory
	maxInline    = 4 << 10  // bytes of a descriptor's data field
	maxDepth     = 4        // indexes in indexes
	maxNodes     = 2000     // descriptors in one image or archive
	maxManifests = 1000     // entries of an index for this platform
	maxLayers    = 128      // the kernel mounts up to 500, and a mount option has 4096 bytes
	maxNames     = 256      // image names in one archive
	maxEntries   = 20_000   // files in one archive
)

// limitError explains which limit an image exceeds. Only another image or another setting helps.
type limitError string

func (e limitError) Error() string { return string(e) }

func exceeds(format string, args ...any) error { return limitError(fmt.Sprintf(format, args...)) }

// refused reports whether an image or an archive was refused because it exceeds a limit.
func refused(err error) bool {
	_, ok := errors.AsType[limitError](err)
	return ok
}

// spaceError is a [limitError] that the image would not have with more free space on the disk.
type spaceError struct{ limitError }

// Unwrap returns the error as a limitError.
func (e spaceError) Unwrap() error { return e.limitError }

func lacksSpace(err error) bool {
	_, ok := errors.AsType[spaceError](err)
	return ok
}

// bounded is a content store that refuses to open a document that is too large to be decoded. containerd reads documents into memory
// whatever their size.
type bounded struct{ content.Store }

// ReaderAt opens content. It reads documents once to count their values.
func (b bounded) ReaderAt(ctx context.Context, d ocispec.Descriptor) (content.ReaderAt, error) {
	ra, err := b.Store.ReaderAt(ctx, d)
	if err != nil || images.IsLayerType(d.MediaType) {
		return ra, err
	}
	// content.NewReader would move the position at which a caller of it begins.
	if err := checkDocument(d.Digest.String(), ra.Size(), io.NewSectionReader(ra, 0, ra.Size())); err != nil {
		return nil, errors.Join(err, ra.Close())
	}
	return ra, nil
}

// checkDocument refuses a document that is too large, or that has too many values.
func checkDocument(name string, size int64, r io.Reader) error {
	if size > maxDocument {
		return exceeds("%s has %d bytes, the limit for indexes, manifests and configurations is %d", name, size, maxDocument)
	}
	var c valueCounter
	if _, err := io.Copy(&c, io.LimitReader(r, maxDocument)); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if c.count > maxValues {
		return exceeds("%s has more than %d values", name, maxValues)
	}
	return nil
}

// valueCounter counts the delimiters of JSON outside of strings.
type valueCounter struct {
	count           int
	quoted, escaped bool
}

func (c *valueCounter) Write(b []byte) (int, error) {
	for _, char := range b {
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped, c.quoted = char == '\\', char != '"'
		default:
			switch char {
			case '"':
				c.quoted = true
			case '{', '[', ',', ':':
				c.count++
			}
		}
	}
	return len(b), nil
}

// readDocument reads a document of an archive.
func readDocument(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxDocument {
		return nil, exceeds("%s has more than %d bytes", name, maxDocument)
	}
	return data, checkDocument(name, int64(len(data)), bytes.NewReader(data))
}
