package image

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"

	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

// PullByHand is [Scope.Ensure] for a person, without archives. The image is kept until it is removed by name. For a platform other than
// that of the host, pods do not see the image.
func (s *Store) PullByHand(
	ctx context.Context, ref string, platform Platform, policy spec.PullPolicy, progress func(Progress),
) (img Image, err error) {
	name, err := parse(ref)
	if err != nil {
		return Image{}, err
	}
	record := platform.Record(name)
	// It is claimed before the pull, so that no prune removes it after that.
	created, err := s.claim(ctx, byPerson, record)
	if err != nil {
		return Image{}, fail(ctx, ReasonInspect, "pull image", ref, err)
	}
	err = s.keepByHand(ctx, record, func() (err error) {
		if platform.foreign() {
			img, err = s.ensureForeign(ctx, ref, name, platform, policy, progress)
		} else {
			img, err = s.In().Ensure(ctx, ref, policy, progress)
		}
		return err
	})
	if err == nil {
		return img, nil
	}
	if created {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if _, gerr := s.client.ImageService().Get(ctx, record); errdefs.IsNotFound(gerr) {
			err = errors.Join(err, s.release(ctx, byPerson, record))
		}
	}
	return Image{}, err
}

// maxRemovals bounds how often an image is made again that is removed while a person requests it.
const maxRemovals = 3

// keepByHand makes an image, and renews the claim of the person who has requested it. A removal that has begun before sees the new claim.
// One that is complete has removed the image, which is made again. If that goes on, somebody removes it by name after each time:
// it is gone as if it was removed after this request.
func (s *Store) keepByHand(ctx context.Context, record string, ensure func() error) error {
	for range maxRemovals {
		if err := ensure(); err != nil {
			return err
		}
		kept, err := s.renewPerson(ctx, record)
		if kept || err != nil {
			return err
		}
	}
	return s.release(ctx, byPerson, record)
}

// Import adds the images of an archive in the OCI or Docker layout, which may be compressed, for a person. All pods know their names. An
// existing name refers to the new image afterwards. With keep, they are kept until they are removed by name. Without, they are kept only
// while something uses them, but at least for an hour, see [Store.Claims]; so are the images that had their names, see [Store.Restore].
//
// The signatures are those beside the archive, in addition to those in it. The error is an *Error or the error of ctx.
func (s *Store) Import(ctx context.Context, r io.Reader, keep bool, signatures ...signature.Signature) ([]Image, error) {
	list, err := s.importByHand(ctx, r, keep, signatures)
	if err != nil {
		return nil, fail(ctx, ReasonPull, "import image archive", "-", err)
	}
	return list, nil
}

func (s *Store) importByHand(ctx context.Context, r io.Reader, keep bool, signatures []signature.Signature) (list []Image, err error) {
	_, b, release, err := s.begin(ctx, &s.imports)
	if err != nil {
		return nil, err
	}
	defer release()
	counted := readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		b.mu.Lock()
		b.compressed += int64(n) // the size of a stream is not known before EOF
		b.mu.Unlock()
		return n, err
	})
	err = s.leased(ctx, workImport+"by hand "+rand.Text(), discard, func(ctx context.Context) error {
		records, signed, err := s.readArchive(ctx, cancelled(ctx, counted), b,
			func() ([]signature.Signature, error) { return signatures, nil })
		if err != nil {
			return err
		}
		if list, err = s.completeAll(ctx, records); err != nil {
			return err
		}
		if err := s.rememberAll(ctx, signed); err != nil {
			return err
		}
		return s.nameByHand(ctx, records, list, keep)
	})
	return list, b.explain(err)
}

// nameByHand creates the records of imported images. With keep, a person claims them;
// without, they are kept for a while.
func (s *Store) nameByHand(ctx context.Context, records []images.Image, list []Image, keep bool) error {
	for i, rec := range records {
		var err error
		if keep {
			_, err = s.claim(ctx, byPerson, rec.Name)
		} else {
			err = s.renew(ctx, byImport, rec.Name) // no pod may use it yet
		}
		if err != nil {
			return err
		}
		if !keep {
			if err := s.keepReplaced(ctx, rec.Name, rec.Target.Digest); err != nil {
				return err
			}
		}
		rec.Labels = map[string]string{labelArchive: "by hand"} // containerd drops labels without a value
		name := func() error {
			named, err := s.name(ctx, rec)
			if err != nil {
				return fmt.Errorf("image %q: %w", rec.Name, err)
			}
			list[i].CreatedAt = named.CreatedAt
			return nil
		}
		if keep {
			err = s.keepByHand(ctx, rec.Name, name)
		} else {
			err = name()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Platform is the platform of an image; the zero value is that of the host.
type Platform struct {
	name    string // empty: that of the host
	matcher platforms.MatchComparer
}

// ParsePlatform parses a platform such as linux/arm64; empty: that of the host.
func (s *Store) ParsePlatform(text string) (Platform, error) {
	if text == "" {
		return Platform{}, nil
	}
	p, err := platforms.Parse(text)
	if err != nil {
		return Platform{}, fmt.Errorf("platform %q: %w", text, err)
	}
	if p = platforms.Normalize(p); s.platform.Match(p) {
		return Platform{}, nil
	}
	return Platform{name: platforms.Format(p), matcher: platforms.OnlyStrict(p)}, nil
}

// PlatformName returns the normalized name of a platform such as linux/arm64; empty: that of the host.
func (s *Store) PlatformName(text string) (string, error) {
	p, err := s.ParsePlatform(text)
	if err == nil && !p.foreign() {
		return platforms.DefaultString(), nil
	}
	return p.name, err
}

// foreign reports whether the platform is not that of the host.
func (p Platform) foreign() bool { return p.name != "" }
