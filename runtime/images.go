package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// PullImage makes the image of a container available, and those of the volumes that it mounts. It has no time limit: the image store ends pulls that make no
// progress. It calls progress for the first time when a registry is about to be asked, and not at all where none is.
func (r *Runtime) PullImage(
	ctx context.Context, pod *spec.Pod, container string, progress func(done, total int64),
) (pulled bool, err error) {
	ctx = enginecall.Context(ctx)
	c, err := find(pod, container)
	if err != nil {
		return false, fmt.Errorf("pull image: %w", err)
	}
	for _, archive := range pod.ImageArchives {
		if _, err := r.images.ImportFile(ctx, archive); err != nil {
			return false, imageFailure(ctx, err)
		}
	}
	img, err := r.images.Ensure(ctx, c.Image, c.ImagePullPolicy, func(p image.Progress) { progress(p.Bytes, p.TotalBytes) })
	if err != nil {
		return false, pullFailure(ctx, err)
	}
	pulled = img.Pulled
	for _, v := range imageVolumes(pod, c) {
		img, err := r.images.Ensure(ctx, v.Image.Reference, v.Image.PullPolicy, func(p image.Progress) { progress(p.Bytes, p.TotalBytes) })
		if err != nil {
			return false, imageFailure(ctx, err)
		}
		pulled = pulled || img.Pulled
	}
	return pulled, nil
}

// FindImage reports whether the image of a container is here, and those of the volumes that it mounts, so that their policies want no
// pull.
func (r *Runtime) FindImage(ctx context.Context, pod *spec.Pod, container string) (here bool, err error) {
	ctx = enginecall.Context(ctx)
	c, err := find(pod, container)
	if err != nil {
		return false, fmt.Errorf("find image: %w", err)
	}
	here, err = r.images.Find(ctx, c.Image, c.ImagePullPolicy)
	for _, v := range imageVolumes(pod, c) {
		if here && err == nil {
			here, err = r.images.Find(ctx, v.Image.Reference, v.Image.PullPolicy)
		}
	}
	if err != nil {
		return false, imageFailure(ctx, err)
	}
	return here, nil
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

// find returns the container of this name, which may be an init container or an ephemeral one.
func find(pod *spec.Pod, name string) (*spec.Container, error) {
	if c := pod.Container(name); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("pod %s has no container %s", pod.Name, name)
}
