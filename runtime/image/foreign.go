package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/spec"
)

// Images for other platforms are pulled to be exported. They have records of their own, so that a pod never finds one, and are not
// unpacked.

const (
	// foreignPrefix starts the names of their records: platform/linux-arm64/docker.io/library/busybox:1.
	foreignPrefix = "platform/"
	// labelPlatform is the label with the platform.
	labelPlatform = "podstead.io/platform"
	// workForeign is the kind of work of a pull that is not resumed after a restart of the daemon.
	workForeign = "pull-foreign "
)

// Record returns the record of an image with this name.
func (p Platform) Record(name string) string {
	if !p.foreign() {
		return name
	}
	return foreignPrefix + strings.ReplaceAll(p.name, "/", "-") + "/" + name
}

// foreignName returns the name of an image without the prefix of its record, and whether it has one.
func foreignName(record string) (name string, foreign bool) {
	rest, ok := strings.CutPrefix(record, foreignPrefix)
	if !ok {
		return record, false
	}
	_, name, _ = strings.Cut(rest, "/")
	return name, true
}

// ensureForeign is Ensure for another platform.
func (s *Store) ensureForeign(
	ctx context.Context, ref, name string, p Platform, policy spec.PullPolicy, progress func(Progress),
) (Image, error) {
	if policy == spec.PullIfNotPresent || policy == spec.PullNever {
		rec, err := s.client.ImageService().Get(ctx, p.Record(name))
		if err == nil {
			if d, err := s.detail(ctx, rec); err == nil && !d.Damaged && s.admitted(ctx, rec) {
				return d.Image, nil
			}
		} else if !errdefs.IsNotFound(err) {
			return Image{}, fail(ctx, ReasonInspect, "look up image", ref, err)
		}
		if policy == spec.PullNever {
			return Image{}, neverPull(ref, nil)
		}
	}
	if progress != nil {
		progress(Progress{})
	}
	pull := func(ctx context.Context, report func(Progress)) (Image, error) {
		return s.pullForeign(ctx, name, p, report)
	}
	img, err := s.flights.do(ctx, "pull "+p.name+" "+name, pull, progress)
	if err != nil {
		return Image{}, fail(ctx, ReasonPull, "pull image", ref, err)
	}
	return img, nil
}

func (s *Store) pullForeign(ctx context.Context, name string, p Platform, report func(Progress)) (img Image, err error) {
	m, b, release, err := s.begin(ctx, &s.pulls)
	if err != nil {
		return Image{}, err
	}
	defer release()
	err = s.leased(ctx, workForeign+p.Record(name), resume, func(ctx context.Context) error {
		var target ocispec.Descriptor
		a := &access{store: s, name: name, ring: &credentials.Keyring{}, meter: m}
		err := a.try(ctx, func(r remotes.Resolver) (err error) {
			target, err = s.fetchForeign(ctx, name, p, r, report, b)
			return err
		})
		if err != nil {
			return b.explain(err)
		}
		rec, err := s.name(ctx, images.Image{Name: p.Record(name), Target: target, Labels: map[string]string{labelPlatform: p.name}})
		if err != nil {
			return err
		}
		d, err := s.detail(ctx, rec)
		img = d.Image
		return err
	})
	img.Pulled = true
	return img, err
}

// fetchForeign fetches the content of an image for a platform.
func (s *Store) fetchForeign(
	ctx context.Context, name string, p Platform, resolver remotes.Resolver, report func(Progress), b *budget,
) (target ocispec.Descriptor, err error) {
	resolver, signed, err := s.pin(ctx, resolver, name, p.matcher)
	if err != nil {
		return target, err
	}
	resolved, target, err := resolver.Resolve(ctx, name)
	if err != nil {
		return target, err
	}
	fetcher, err := resolver.Fetcher(ctx, resolved)
	if err != nil {
		return target, err
	}
	cs := s.client.ContentStore()
	t, parts := &tracker{}, newTree(b)
	defer t.report(ctx, cs, report)()
	children := images.LimitManifests(images.FilterPlatforms(images.SetChildrenLabels(cs, images.ChildrenHandler(cs)), p.matcher),
		p.matcher, 1)
	handler := parts.guard(t.wrap(s.checkLayers(images.Handlers(remotes.FetchHandler(cs, fetcher), children), t)))
	if err := images.Dispatch(ctx, handler, nil, target); err != nil {
		return target, err
	}
	manifest, err := images.Manifest(ctx, cs, target, p.matcher)
	if err != nil {
		return target, err
	}
	found, err := images.ConfigPlatform(ctx, cs, manifest.Config)
	if err == nil && !p.matcher.Match(found) {
		err = &PlatformError{Image: platforms.Format(found), Want: p.name}
	}
	if err == nil {
		err = s.remember(ctx, &signed, p.matcher)
	}
	return target, err
}

// PlatformError reports that an image is for another platform.
type PlatformError struct{ Image, Want string }

func (e *PlatformError) Error() string {
	return fmt.Sprintf("image is for platform %s, not %s", e.Image, e.Want)
}

// IsNotFound reports whether an image does not exist, on the host or in a registry.
func IsNotFound(err error) bool {
	_, other := errors.AsType[*PlatformError](err)
	return errdefs.IsNotFound(err) || other
}
