package image

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/internal/order"
)

// Entry is a name of an image on this host, as people see it.
type Entry struct {
	Image
	// Record identifies the entry. It differs from the name for an image of an archive of a pod, see [ArchiveRecord], and for other
	// platforms.
	Record string
	// Platform is that of the image, such as linux/amd64. It is empty if the content is damaged.
	Platform string
	// Foreign is true if the image is for another platform than the host's.
	Foreign bool
	// Scoped is true if only pods see the name that list its archive.
	Scoped bool
	// Damaged is true if content is missing.
	Damaged bool
	// Verification is what the policy for signatures says about the image.
	Verification Verification
}

// Detail is an entry with what its configuration says.
type Detail struct {
	Entry
	Config ocispec.Image
	// Layers are the compressed layers, the lowest first.
	Layers []ocispec.Descriptor
	// Platforms are those that the index of the image lists; for an image without an index, its own.
	Platforms []string

	manifest ocispec.Descriptor
}

// ArchiveRecord returns the record that a name has in an archive.
func ArchiveRecord(archive, name string) (string, error) {
	prefix, err := recordsOf(archive)
	return prefix + name, err
}

// FullName returns the full name of a reference as in a pod file: busybox is docker.io/library/busybox:latest. The error is an *Error.
func FullName(ref string) (string, error) {
	name, err := parse(ref)
	return name, err
}

// IsShort reports whether a reference has no registry.
func IsShort(ref string) bool {
	first, _, found := strings.Cut(ref, "/")
	return !found || first != "localhost" && !strings.ContainsAny(first, ".:")
}

// Refers reports whether a full name refers to an image by its name, or by the digest in the same repository.
func Refers(name string, img *Image) bool {
	if name == img.Name {
		return true
	}
	repo, digest := repository(name)
	if digest == "" || digest != img.Target.Digest.String() {
		return false
	}
	other, _ := repository(img.Name)
	return other == repo
}

// Catalog returns all names of images, sorted by name, the images for the host first.
func (s *Store) Catalog(ctx context.Context) ([]Entry, error) {
	records, err := s.client.ImageService().List(ctx)
	if err != nil {
		return nil, err
	}
	held, targets := heldBy(records, s.files.now()), map[string]digest.Digest{}
	for _, rec := range records {
		targets[rec.Name] = rec.Target.Digest
	}
	list := make([]Entry, 0, len(records))
	for _, rec := range records {
		if strings.HasPrefix(rec.Name, filePrefix) && (held[rec.Name] == "" || targets[imageName(rec.Name)] == rec.Target.Digest) {
			continue // the name that all pods see stands for it
		}
		d, err := s.detail(ctx, rec)
		if err != nil {
			return nil, err
		}
		list = append(list, d.Entry)
	}
	order.Sort(list, func(a, b Entry) int {
		return strings.Compare(sortKey(&a), sortKey(&b))
	})
	return list, nil
}

func sortKey(e *Entry) string {
	if e.Foreign {
		return e.Name + "\x00" + e.Record
	}
	return e.Name
}

// Detail returns an entry with its configuration.
func (s *Store) Detail(ctx context.Context, record string) (Detail, error) {
	rec, err := s.client.ImageService().Get(ctx, record)
	if err != nil {
		return Detail{}, err
	}
	d, err := s.detail(ctx, rec)
	if err != nil {
		return Detail{}, err
	}
	d.Platforms = s.indexed(ctx, rec.Target)
	if len(d.Platforms) == 0 && d.Platform != "" {
		d.Platforms = []string{d.Platform}
	}
	return d, nil
}

// detail reads a record. If content is missing, the entry is damaged; the error is that of ctx.
func (s *Store) detail(ctx context.Context, rec images.Image) (Detail, error) {
	matcher := s.platform
	var d Detail
	d.Record, d.Verification = rec.Name, s.verification(ctx, rec)
	name, foreign := foreignName(rec.Name)
	if foreign {
		d.Foreign, d.Platform = true, rec.Labels[labelPlatform]
		p, err := platforms.Parse(d.Platform)
		if err != nil {
			p = platforms.DefaultSpec() // its label was lost: it is damaged unless it is for this host
		}
		matcher = platforms.OnlyStrict(p)
	}
	d.Scoped = strings.HasPrefix(rec.Name, recordPrefix) || strings.HasPrefix(rec.Name, filePrefix)
	img, err := s.describeFor(ctx, rec, matcher)
	d.Image = img
	if foreign {
		d.Name = name
	}
	if err == nil {
		err = s.readDetail(ctx, &d, matcher)
	}
	d.Damaged = err != nil
	return d, ctx.Err()
}

func (s *Store) readDetail(ctx context.Context, d *Detail, matcher platforms.MatchComparer) (err error) {
	cs := s.client.ContentStore()
	if d.manifest, err = s.manifestFor(ctx, d.Target, matcher, 0); err != nil {
		return err
	}
	manifest, err := images.Manifest(ctx, cs, d.manifest, matcher)
	if err != nil {
		return err
	}
	blob, err := content.ReadBlob(ctx, cs, manifest.Config)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(blob, &d.Config); err != nil {
		return err
	}
	d.Layers = manifest.Layers
	d.Platform = platforms.Format(platforms.Normalize(d.Config.Platform))
	return nil
}

// manifestFor returns the descriptor of the manifest for a platform, whose content is present.
func (s *Store) manifestFor(
	ctx context.Context, d ocispec.Descriptor, matcher platforms.MatchComparer, depth int,
) (ocispec.Descriptor, error) {
	cs := s.client.ContentStore()
	if !images.IsIndexType(d.MediaType) {
		_, err := cs.Info(ctx, d.Digest)
		return d, err
	}
	if depth > maxDepth {
		return d, exceeds("indexes are nested more than %d levels deep", maxDepth)
	}
	children, err := images.Children(ctx, cs, d)
	if err != nil {
		return d, err
	}
	children = slices.DeleteFunc(children, func(c ocispec.Descriptor) bool { return c.Platform != nil && !matcher.Match(*c.Platform) })
	order.Sort(children, byPlatform(matcher))
	for _, c := range children {
		if found, err := s.manifestFor(ctx, c, matcher, depth+1); err == nil {
			return found, nil
		}
	}
	return d, fmt.Errorf("manifest: %w", errdefs.ErrNotFound)
}

// byPlatform compares manifests by how well their platforms match, the best first. One without a platform is equal to all.
func byPlatform(matcher platforms.MatchComparer) func(a, b ocispec.Descriptor) int {
	return func(a, b ocispec.Descriptor) int {
		switch {
		case a.Platform == nil || b.Platform == nil:
			return 0
		case matcher.Less(*a.Platform, *b.Platform):
			return -1
		case matcher.Less(*b.Platform, *a.Platform):
			return 1
		}
		return 0
	}
}

// indexed returns the platforms that an index lists, also those whose content is not present.
func (s *Store) indexed(ctx context.Context, target ocispec.Descriptor) (list []string) {
	if !images.IsIndexType(target.MediaType) {
		return nil
	}
	children, err := images.Children(ctx, s.client.ContentStore(), target)
	if err != nil {
		return nil
	}
	for _, c := range children {
		if c.Platform == nil || c.Platform.OS == "unknown" { // an attestation
			continue
		}
		if p := platforms.Format(platforms.Normalize(*c.Platform)); !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
