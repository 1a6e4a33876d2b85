package image

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
)

// Scope resolves names of images for a pod. A name from an archive is known only to pods that list the archive, because any user can write
// an archive that contains docker.io/library/nginx:1. Names of pulled images are known to all pods.
type Scope struct {
	*Store
	archives []string    // paths
	secrets  PullSecrets // nil: none
}

// In returns the scope of a pod that lists these archives. A name in a later archive takes precedence over the same name in an earlier one,
// and over the name of a pulled image.
func (s *Store) In(archives ...string) Scope { return Scope{Store: s, archives: archives} }

// recordPrefix starts the names of records of images from archives. The name of a pulled image starts with a domain, which has a dot or a
// colon, or is localhost.
const recordPrefix = "archive/"

// recordsOf returns the prefix of the records of an archive.
func recordsOf(archive string) (string, error) {
	path, err := filepath.Abs(archive)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%x/", recordPrefix, sha256.Sum256([]byte(path))), nil
}

// imageName returns the name of an image without the prefix of its record.
func imageName(record string) string {
	for _, prefix := range [...]string{recordPrefix, filePrefix} {
		if rest, ok := strings.CutPrefix(record, prefix); ok {
			_, name, _ := strings.Cut(rest, "/")
			return name
		}
	}
	return record
}

// prefixes returns the prefixes of the records in the scope, by precedence.
func (s Scope) prefixes() ([]string, error) {
	var list []string
	for _, archive := range slices.Backward(s.archives) {
		prefix, err := recordsOf(archive)
		if err != nil {
			return nil, err
		}
		list = append(list, prefix)
	}
	return append(list, ""), nil
}

// lookup returns the record of a full name. A name with a digest also matches another name of the same repository, because
// archives contain tags.
func (s Scope) lookup(ctx context.Context, name string) (images.Image, bool, error) {
	prefixes, err := s.prefixes()
	if err != nil {
		return images.Image{}, false, err
	}
	for _, prefix := range prefixes {
		rec, err := s.client.ImageService().Get(ctx, prefix+name)
		if err == nil || !errdefs.IsNotFound(err) {
			return rec, err == nil, err
		}
	}
	repo, digest := repository(name)
	if digest == "" {
		return images.Image{}, false, nil
	}
	same, err := s.client.ImageService().List(ctx, "target.digest=="+digest)
	if err != nil {
		return images.Image{}, false, err
	}
	for _, prefix := range prefixes {
		for _, rec := range same {
			if name := imageName(rec.Name); prefix+name == rec.Name {
				if r, _ := repository(name); r == repo {
					return rec, true, nil
				}
			}
		}
	}
	return images.Image{}, false, nil
}
