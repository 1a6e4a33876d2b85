package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/spec"
)

// Ensure gives the image of ref, unpacked and ready to start containers from,
// and pulls it if policy says so. The empty policy is Always for the tag latest
// (also where no tag is written) and IfNotPresent for any other tag, for a
// digest, and for what came from an archive. With Always a pull that fails is an
// error even where the image is here; any policy but Never replaces an image
// whose content is damaged.
//
// Its error is an *Error, that of ctx, which ends the wait at once, or ErrClosed. Calls for the
// same image share one pull, which is cancelled with the last of them. progress
// may be nil; it is called in the goroutine of the caller, first when a registry is about to be asked, then while layers come.
func (s *Store) Ensure(ctx context.Context, ref string, policy spec.PullPolicy, progress func(Progress)) (Image, error) {
	name, tag, err := parse(ref)
	if err != nil {
		return Image{}, err
	}
	rec, found, err := s.lookup(ctx, name)
	if err != nil {
		return Image{}, fail(ctx, ReasonInspect, "look up image", ref, err)
	}
	_, archived := rec.Labels[labelArchive]
	policy = resolve(policy, tag, archived)
	if policy == spec.PullAlways {
		return s.pullShared(ctx, ref, name, progress)
	}

	var damage error
	if found {
		img, err := s.ready(ctx, rec)
		if err == nil {
			return img, nil
		}
		if damage = err; ctx.Err() != nil || !errors.Is(err, errDamaged) {
			return Image{}, fail(ctx, ReasonInspect, "prepare image", ref, err)
		}
	}
	if policy == spec.PullNever {
		return Image{}, neverPull(ref, damage)
	}
	img, err := s.pullShared(ctx, ref, name, progress)
	if e, ok := errors.AsType[*Error](err); ok && damage != nil {
		err = &Error{Reason: e.Reason, Message: fmt.Sprintf("replace image %q (%v): %v", ref, damage, e), Err: e}
	}
	return img, err
}

// Find reports whether the image of ref is here, unpacked, so that a policy wants no pull of it.
func (s *Store) Find(ctx context.Context, ref string, policy spec.PullPolicy) (bool, error) {
	name, tag, err := parse(ref)
	if err != nil {
		return false, err
	}
	rec, found, err := s.lookup(ctx, name)
	if err != nil {
		return false, fail(ctx, ReasonInspect, "look up image", ref, err)
	}
	_, archived := rec.Labels[labelArchive]
	if !found || resolve(policy, tag, archived) == spec.PullAlways {
		return false, nil
	}
	_, err = s.ready(ctx, rec)
	return err == nil, ctx.Err()
}

// pullShared pulls an image together with all who want it now.
func (s *Store) pullShared(ctx context.Context, ref, name string, progress func(Progress)) (Image, error) {
	if progress != nil {
		progress(Progress{})
	}
	pull := func(ctx context.Context, report func(Progress)) (Image, error) { return s.pull(ctx, name, report) }
	img, err := s.flights.do(ctx, "pull "+name, pull, progress)
	if err != nil {
		return Image{}, fail(ctx, ReasonPull, "pull image", ref, err)
	}
	return img, nil
}

// resolve gives the policy that an empty one stands for.
func resolve(policy spec.PullPolicy, tag string, archived bool) spec.PullPolicy {
	switch {
	case policy != "":
		return policy
	case tag == "latest" && !archived:
		return spec.PullAlways
	default:
		return spec.PullIfNotPresent
	}
}

func neverPull(ref string, damage error) error {
	if damage != nil {
		return &Error{
			Reason: ReasonNeverPull, Err: damage,
			Message: fmt.Sprintf("image %q has to be pulled again, against its pull policy of Never: %v", ref, damage),
		}
	}
	return &Error{
		Reason:  ReasonNeverPull,
		Message: fmt.Sprintf("Container image %q is not present with pull policy of Never", ref),
	}
}

// lookup finds the record of a full name. A name by digest is also answered by
// another name of the same repository, since that is how archives bring it.
func (s *Store) lookup(ctx context.Context, name string) (images.Image, bool, error) {
	is := s.client.ImageService()
	rec, err := is.Get(ctx, name)
	if err == nil || !errdefs.IsNotFound(err) {
		return rec, err == nil, err
	}
	repo, digest := repository(name)
	if digest == "" {
		return images.Image{}, false, nil
	}
	same, err := is.List(ctx, "target.digest=="+digest)
	if err != nil {
		return images.Image{}, false, err
	}
	for _, rec := range same {
		if r, _ := repository(rec.Name); r == repo {
			return rec, true, nil
		}
	}
	return images.Image{}, false, nil
}

// ready gives an image of this machine, unpacked. The error is errDamaged where
// only new content helps.
func (s *Store) ready(ctx context.Context, rec images.Image) (Image, error) {
	img, err := s.describe(ctx, rec)
	if err == nil {
		var ok bool
		if ok, err = s.unpacked(ctx, img); ok && err == nil {
			return img, nil
		}
	}
	if err == nil {
		unpack := func(ctx context.Context, _ func(Progress)) (Image, error) { return img, s.unpack(ctx, img) }
		if img, err = s.flights.do(ctx, "unpack "+img.Snapshot, unpack, nil); err == nil {
			return img, nil
		}
		err = fail(ctx, ReasonPull, "unpack image", rec.Name, err)
	}
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return Image{}, err
	}
	if bad, verr := s.verify(ctx, rec); verr != nil {
		return Image{}, errors.Join(err, verr)
	} else if bad {
		return Image{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return Image{}, err
}
