package runtime

import (
	"context"
	"errors"
	"fmt"

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
	for _, archive := range pod.ImageArchives {
		if _, err := r.images.ImportFile(ctx, archive); err != nil {
			return false, imageFailure(ctx, err)
		}
	}
	report := func(p image.Progress) { progress(p.Bytes, p.TotalBytes) }
	img, err := r.images.Ensure(ctx, c.Image, c.ImagePullPolicy, report)
	if err != nil {
		return false, pullFailure(ctx, err)
	}
	pulled = img.Pulled
	for _, v := range imagevolume.Of(pod, c) {
		img, err := r.images.Ensure(ctx, v.Image.Reference, v.Image.PullPolicy, report)
		if err != nil {
			return false, imageFailure(ctx, err)
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

func imageFailure(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*image.Error](err); ok {
		return lifecycle.Failure{Reason: lifecycle.Reason(e.Reason), Message: enginecall.Message(e)}
	}
	return enginecall.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonErrImagePull, err)
}
