package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/runtime/container"
	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/imagevolume"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// PullImage pulls the image of a container according to its pull policy, and the images of the volumes that the container mounts. Archives of
// the pod are imported first. It has no timeout: the image store cancels a pull without progress. It calls progress before the first request
// to a registry, and not at all without one.
func (r *Runtime) PullImage(
	ctx context.Context, pod *spec.Pod, name string, progress func(done, total int64),
) (pulled bool, err error) {
	ctx = enginecall.Context(ctx)
	c, err := container.Find(pod, name)
	if err != nil {
		return false, fmt.Errorf("pull image: %w", err)
	}
	var held []string // references of images in the archives
	for _, archive := range pod.ImageArchives {
		imported, err := r.images.ImportFile(ctx, archive)
		if err != nil {
			return false, imageFailure(ctx, err)
		}
		for _, img := range imported {
			held = append(held, img.Name)
		}
	}
	report := func(p image.Progress) { progress(p.Bytes, p.TotalBytes) }
	img, err := r.images.Ensure(ctx, c.Image, c.ImagePullPolicy, report)
	if err != nil {
		return false, withArchives(pullFailure(ctx, err), held)
	}
	pulled = img.Pulled
	for _, v := range imagevolume.Of(pod, c) {
		img, err := r.images.Ensure(ctx, v.Image.Reference, v.Image.PullPolicy, report)
		if err != nil {
			return false, withArchives(imageFailure(ctx, err), held)
		}
		pulled = pulled || img.Pulled
	}
	return pulled, nil
}

// FindImage reports whether the image of a container and the images of the volumes that it mounts are present, so that no pull is needed
// according to their pull policies. It makes no request to a registry.
func (r *Runtime) FindImage(ctx context.Context, pod *spec.Pod, name string) (present bool, err error) {
	ctx = enginecall.Context(ctx)
	c, err := container.Find(pod, name)
	if err != nil {
		return false, fmt.Errorf("find image: %w", err)
	}
	present, err = r.images.Find(ctx, c.Image, c.ImagePullPolicy)
	for _, v := range imagevolume.Of(pod, c) {
		if present && err == nil {
			present, err = r.images.Find(ctx, v.Image.Reference, v.Image.PullPolicy)
		}
	}
	if err != nil {
		return false, imageFailure(ctx, err)
	}
	return present, nil
}

// pullFailure is the failure of a pull of the container's own image. Its message has the cause alone: events and explanations name the
// operation and the image before it.
func pullFailure(ctx context.Context, err error) error {
	e, ok := errors.AsType[*image.Error](err)
	if ok && e.Reason == image.ReasonPull && e.Err != nil {
		return lifecycle.Failure{Reason: lifecycle.Reason(e.Reason), Message: enginecall.Message(e.Err)}
	}
	return imageFailure(ctx, err)
}

// maxListed limits the references in a message.
const maxListed = 5

// withArchives adds the references that the archives of the pod contain to the failure of a pull. An image that is in an archive is not
// pulled, so the reference in the pod file is probably wrong.
func withArchives(err error, held []string) error {
	f, ok := errors.AsType[lifecycle.Failure](err)
	if !ok || len(held) == 0 {
		return err
	}
	held = slices.Compact(slices.Sorted(slices.Values(held)))
	list := strings.Join(held[:min(len(held), maxListed)], ", ")
	if more := len(held) - maxListed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	f.Message += " (imageArchives contain " + list + ")"
	return f
}

func imageFailure(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*image.Error](err); ok {
		return lifecycle.Failure{Reason: lifecycle.Reason(e.Reason), Message: enginecall.Message(e)}
	}
	return enginecall.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonErrImagePull, err)
}
