package image

import (
	"context"
	"errors"

	"github.com/containerd/containerd/v2/core/images"
)

// Shadowing returns the path of the archive in the scope that an image is from, if this host has a different image of the same name, pulled
// or from another archive. Otherwise the path is empty.
func (s Scope) Shadowing(ctx context.Context, img Image) (archive string, err error) {
	if !img.FromArchive {
		return "", nil
	}
	records, err := s.recordsOfName(ctx, img.Name)
	if err != nil {
		return "", err
	}
	different := false
	for _, rec := range records {
		if rec.Target.Digest == img.Target.Digest {
			continue
		}
		other, err := s.describe(ctx, rec)
		if ctx.Err() != nil {
			return "", errors.Join(err, ctx.Err())
		}
		if err == nil && other.ConfigDigest != img.ConfigDigest { // with an error its content is damaged
			different = true
		}
	}
	if !different {
		return "", nil
	}
	return s.origin(img, records)
}

// origin returns the path of the archive in the scope whose record has the target of the image.
func (s Scope) origin(img Image, records map[string]images.Image) (archive string, err error) {
	for _, path := range s.archives {
		prefix, err := recordsOf(path)
		if err != nil {
			return "", err
		}
		if rec, ok := records[prefix+img.Name]; ok && rec.Target.Digest == img.Target.Digest {
			archive = path
		}
	}
	return archive, nil
}

// recordsOfName returns the records of all images with a name, of archives in any scope and of pulled images, by the names of the records.
func (s *Store) recordsOfName(ctx context.Context, name string) (map[string]images.Image, error) {
	all, err := s.client.ImageService().List(ctx)
	if err != nil {
		return nil, err
	}
	records := map[string]images.Image{}
	for _, rec := range all {
		if imageName(rec.Name) == name {
			records[rec.Name] = rec
		}
	}
	return records, nil
}
