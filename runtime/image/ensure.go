package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

// Ensure returns the image of ref, unpacked, and pulls it if policy requires that. The empty policy means Always for the tag
// latest or no tag, and IfNotPresent for other tags, digests and images from archives. With Always a failed pull is an error even
// if the image is present. Every policy except Never replaces an image whose content is damaged.
//
// The error is an *Error, the error of ctx, or ErrClosed. Cancellation of ctx ends the wait at once. Calls for the same image
// share one pull, which is cancelled when the last of them returns. progress may be nil. It is called in the caller's goroutine,
// first before the registry is contacted, then while layers arrive.
func (s Scope) Ensure(ctx context.Context, ref string, policy spec.PullPolicy, progress func(Progress)) (Image, error) {
	return s.EnsureAgain(ctx, ref, policy, Previous{}, progress)
}

// Previous is the image that the previous run of a container used. The zero value means that there is none.
type Previous struct {
	ConfigDigest string // as in [Image]
	FromArchive  bool
}

// EnsureAgain is Ensure for another run of a container. It returns the image of the previous run as long as its content is present and the
// policy requires no pull, even if the name refers to another image now. Unless the policy is Always, it waits for pending archives of the
// image directories while the image is missing.
func (s Scope) EnsureAgain(
	ctx context.Context, ref string, policy spec.PullPolicy, p Previous, progress func(Progress),
) (Image, error) {
	name, err := parse(ref)
	if err != nil {
		return Image{}, err
	}
	rec, found, err := s.lookupAgain(ctx, name, p)
	if err != nil {
		return Image{}, fail(ctx, ReasonInspect, "look up image", ref, err)
	}
	if !found && policy != spec.PullAlways {
		err := s.awaitFiles(ctx, progress, func() (bool, error) {
			rec, found, err = s.lookup(ctx, name)
			return found, err
		})
		if err != nil {
			return Image{}, fail(ctx, ReasonInspect, "look up image", ref, err)
		}
	}
	_, archived := rec.Labels[labelArchive]
	policy = cmp.Or(policy, spec.DefaultPullPolicy(ref, archived))
	if policy == spec.PullAlways {
		return s.pullShared(ctx, ref, name, progress)
	}

	var damage error
	if found {
		img, err := s.use(ctx, rec, progress)
		if err == nil {
			return img, nil
		}
		replaceable := signature.Refused(err) && !archived && policy != spec.PullNever // the name may refer to a signed image by now
		if ctx.Err() != nil || !errors.Is(err, errDamaged) && !replaceable {
			return Image{}, fail(ctx, ReasonInspect, "prepare image", ref, err)
		}
		if !replaceable {
			damage = err
		}
	}
	if policy == spec.PullNever {
		return Image{}, neverPull(ref, damage)
	}
	img, err := s.pullShared(ctx, ref, name, progress)
	if e, ok := errors.AsType[*Error](err); ok && damage != nil {
		cause := fmt.Errorf("%w (the image on this host cannot be used: %s)", e.Err, damage.Error())
		err = &Error{Reason: e.Reason, Message: fmt.Sprintf("pull image %q: %v", ref, cause), Err: cause}
	}
	return img, err
}

// Find reports whether the image of ref is present and unpacked, so that policy requires no pull.
func (s Scope) Find(ctx context.Context, ref string, policy spec.PullPolicy) (bool, error) {
	_, found, err := s.FindAgain(ctx, ref, policy, Previous{})
	return found, err
}

// FindAgain returns the image that EnsureAgain returns without a pull, and whether there is one.
func (s Scope) FindAgain(ctx context.Context, ref string, policy spec.PullPolicy, p Previous) (Image, bool, error) {
	name, err := parse(ref)
	if err != nil {
		return Image{}, false, err
	}
	rec, found, err := s.lookupAgain(ctx, name, p)
	if err != nil {
		return Image{}, false, fail(ctx, ReasonInspect, "look up image", ref, err)
	}
	_, archived := rec.Labels[labelArchive]
	if !found || cmp.Or(policy, spec.DefaultPullPolicy(ref, archived)) == spec.PullAlways || !s.admitted(ctx, rec) {
		return Image{}, false, nil
	}
	img, err := s.ready(ctx, rec, nil)
	return img, err == nil, ctx.Err()
}

// pullShared pulls an image, or joins a pull of it with the same credentials.
func (s Scope) pullShared(ctx context.Context, ref, name string, progress func(Progress)) (Image, error) {
	ring, missing, missingErr := s.keyring()
	if progress != nil {
		progress(Progress{MissingSecrets: strings.Join(missing, ", ")})
	}
	pull := func(ctx context.Context, report func(Progress)) (Image, error) {
		return s.pull(ctx, name, ring, report)
	}
	img, err := s.flights.do(ctx, "pull "+name+keyOf(ring, name), pull, progress)
	if err != nil && missingErr != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w (%w)", err, missingErr)
	}
	if err != nil {
		return Image{}, fail(ctx, ReasonPull, "pull image", ref, err)
	}
	return img, nil
}

func neverPull(ref string, damage error) error {
	if damage != nil {
		return &Error{
			Reason: ReasonNeverPull, Err: damage,
			Message: fmt.Sprintf("image %q must be pulled again, but its pull policy is Never: %v", ref, damage),
		}
	}
	return &Error{
		Reason:  ReasonNeverPull,
		Message: fmt.Sprintf("Container image %q is not present with pull policy of Never", ref),
	}
}

// use returns an image of this host, unpacked, if the policy for signatures admits it.
func (s Scope) use(ctx context.Context, rec images.Image, progress func(Progress)) (Image, error) {
	rec, err := s.admit(ctx, rec)
	if err != nil {
		return Image{}, err
	}
	return s.ready(ctx, rec, progress)
}

// ready returns an image of this host, unpacked. The error is errDamaged if only new content helps.
func (s *Store) ready(ctx context.Context, rec images.Image, progress func(Progress)) (Image, error) {
	img, err := s.describe(ctx, rec)
	if err == nil {
		var ok bool
		if ok, err = s.unpacked(ctx, img); ok && err == nil {
			return img, nil
		}
	}
	if err == nil {
		unpack := func(ctx context.Context, report func(Progress)) (Image, error) {
			return img, s.unpack(ctx, img, report)
		}
		if img, err = s.flights.do(ctx, "unpack "+img.Target.Digest.String(), unpack, progress); err == nil {
			return img, nil
		}
		if refused(err) && !lacksSpace(err) { // its content would stay, and be unpacked at each attempt
			derr := s.client.ImageService().Delete(ctx, rec.Name, images.SynchronousDelete(), images.DeleteTarget(&rec.Target))
			if derr != nil && !errdefs.IsNotFound(derr) {
				err = errors.Join(err, derr)
			}
		}
		err = fail(ctx, ReasonPull, "unpack image", imageName(rec.Name), err)
		if refused(err) {
			return Image{}, err
		}
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
