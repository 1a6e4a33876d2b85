package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/runtime/image/signature"
)

const (
	// kindAnnotation says in the index of cosign save what an entry is.
	kindAnnotation = "kind"
	cosignKinds    = "dev.cosignproject.cosign/"
)

// attached matches the names of what cosign attaches to an image by a tag.
var attached = lazyregexp.New(`(^|:)sha256-[0-9a-f]{64}\.(sig|att|sbom)$`)

// archiveSource has the signatures that come with an archive: in files beside it, and in its index.
type archiveSource struct {
	store *Store
	// beside returns the signatures in files beside the archive.
	beside func() ([]signature.Signature, error)
	// entries are the manifests in the index that may have signatures.
	entries []ocispec.Descriptor
	rule    *signature.Rule
}

// split takes the entries that are not images out of the index of an archive. It returns those that may have signatures, and so may entries
// without a name.
func split(index *ocispec.Index) (signatures []ocispec.Descriptor) {
	var named []ocispec.Descriptor
	for _, d := range index.Manifests {
		name, ref := d.Annotations[images.AnnotationImageName], d.Annotations[ocispec.AnnotationRefName]
		kind, isCosign := strings.CutPrefix(d.Annotations[kindAnnotation], cosignKinds)
		isAttached := attached.MatchString(name) || attached.MatchString(ref) || isCosign && (kind == "sigs" || kind == "atts") ||
			strings.HasPrefix(d.ArtifactType, signature.BundleType) || d.ArtifactType == cosignArtifact
		if !isAttached {
			named = append(named, d)
		}
		if images.IsManifestType(d.MediaType) && d.Size <= maxSignatureManifest && (isAttached || name == "" && ref == "") {
			signatures = append(signatures, d)
		}
	}
	index.Manifests = named
	return signatures
}

// approveAll checks the images of an archive, and changes the targets of those whose index is not signed to their manifests that are. The
// content of the archive has been stored, and nothing of it has been unpacked.
func (f *archiveSource) approveAll(ctx context.Context, records []images.Image) ([]verdict, error) {
	verdicts := make([]verdict, len(records))
	for i := range records {
		rule, _ := f.store.rule(records[i].Name)
		f.rule = &rule
		v, err := f.store.approve(ctx, records[i].Name, records[i].Target, f.store.platform, f)
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", records[i].Name, err)
		}
		verdicts[i], records[i].Target = v, v.target
	}
	return verdicts, nil
}

// rememberAll records verdicts.
func (s *Store) rememberAll(ctx context.Context, verdicts []verdict) error {
	var errs []error
	for i := range verdicts {
		errs = append(errs, s.remember(ctx, &verdicts[i], s.platform))
	}
	return errors.Join(errs...)
}

func (f *archiveSource) document(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	return f.store.readStored(ctx, d)
}

func (f *archiveSource) signatures(ctx context.Context, _ ocispec.Descriptor, _ int) (list []signature.Signature, more bool, err error) {
	if list, err = f.beside(); err != nil {
		return nil, false, f.rule.Refuse("%v", err)
	}
	if len(f.entries) > signature.MaxSignatures {
		return nil, false, f.rule.Refuse("the archive has more than %d manifests without a name", signature.MaxSignatures)
	}
	var total int64
	for _, d := range f.entries {
		if err := checkSize(d, maxSignatureManifest, &total, f.rule); err != nil {
			return nil, false, err
		}
		manifest, err := f.store.readStored(ctx, d)
		if errdefs.IsNotFound(err) {
			continue // the manifest for another platform may be missing
		}
		if err != nil {
			return nil, false, err
		}
		some, err := readSignatures(manifest, f.rule, func(l ocispec.Descriptor, limit int64) ([]byte, error) {
			if err := checkSize(l, limit, &total, f.rule); err != nil {
				return nil, err
			}
			data, err := f.store.readStored(ctx, l)
			if errdefs.IsNotFound(err) {
				err = f.rule.Refuse("signature is malformed: %s is not in the archive", l.Digest)
			}
			return data, err
		})
		if err != nil {
			return nil, false, err
		}
		list = append(list, some...)
	}
	return list, false, nil
}

// readStored reads a document of the content store. Its size must have been checked if a registry or an archive has chosen it.
func (s *Store) readStored(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	info, err := s.content.Info(ctx, d.Digest)
	if err != nil {
		return nil, err
	}
	if info.Size != d.Size || info.Size > maxDocument {
		return nil, exceeds("%s has %d bytes, its descriptor has %d", d.Digest, info.Size, d.Size)
	}
	return content.ReadBlob(ctx, s.content, d)
}
