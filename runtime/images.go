package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/runtime/container"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// PullImage pulls the image of a container according to its pull policy, and the images of the volumes that the container mounts. It
// imports the archives of the pod first if they were not imported before, or if an image is missing. It has no timeout: the image store
// cancels a pull without progress. It calls progress while an archive is being imported, before the first request to a registry, and during
// a pull.
func (r *Runtime) PullImage(
	ctx context.Context, pod *spec.Pod, a lifecycle.PullImage, progress func(lifecycle.Progress),
) (lifecycle.ImagePulled, error) {
	ctx = engine.Context(ctx)
	none := lifecycle.ImagePulled{}
	c, err := container.Find(pod, a.Container)
	if err != nil {
		return none, fmt.Errorf("pull image: %w", err)
	}
	held, err := r.importArchives(ctx, pod, c, a, progress)
	if err != nil {
		return none, imageFailure(ctx, err)
	}
	report := func(p image.Progress) {
		progress(lifecycle.Progress{
			Archive: p.Archive, Done: p.Bytes, Total: p.TotalBytes, Unpacking: p.Unpacking, MissingSecrets: p.MissingSecrets,
		})
	}
	scope := r.images.In(pod.ArchivesOf(c)...).Using(r.pullSecrets(pod))
	img, err := scope.EnsureAgain(ctx, c.Image, c.ImagePullPolicy, previous(a.Image), report)
	if err != nil {
		return none, withArchives(pullFailure(ctx, err), held)
	}
	result := lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: identity(img), Pulled: img.Pulled}
	images := []used{{c.Image, img}}
	for _, v := range container.ImageVolumesOf(pod, c) {
		img, err := scope.Ensure(ctx, v.Image.Reference, v.Image.PullPolicy, report)
		if err != nil {
			return none, withArchives(imageFailure(ctx, err), held)
		}
		result.Pulled = result.Pulled || img.Pulled
		images = append(images, used{v.Image.Reference, img})
	}
	if result.Shadows, err = shadows(ctx, scope, images, a.Image); err != nil {
		return none, imageFailure(ctx, err)
	}
	return result, nil
}

// used is an image that a container uses.
type used struct {
	reference string // as in the pod file
	image     image.Image
}

// shadows returns which images of a container are from archives of the pod and differ from other images of the same names. The first image
// is that of the container itself. It returns none if that is the image of the previous run, because they were reported then.
func shadows(ctx context.Context, scope image.Scope, images []used, previous lifecycle.Image) (list []lifecycle.Shadow, err error) {
	if identity(images[0].image) == previous {
		return nil, nil
	}
	for _, u := range images {
		archive, err := scope.Shadowing(ctx, u.image)
		if err != nil {
			return nil, fmt.Errorf("compare images of the name %q: %w", u.reference, err)
		}
		if s := (lifecycle.Shadow{Image: u.reference, Archive: archive}); archive != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}

// importArchives imports the archives of a container, unless they were imported before and the images of the container are still present.
// An archive may be moved or replaced while its pod runs. It returns the references of the imported images.
func (r *Runtime) importArchives(
	ctx context.Context, pod *spec.Pod, c *spec.Container, a lifecycle.PullImage, progress func(lifecycle.Progress),
) (references []string, err error) {
	archives := pod.ArchivesOf(c)
	if len(archives) == 0 {
		return nil, nil
	}
	if a.Imported {
		scope := r.images.In(archives...)
		_, present, err := scope.FindAgain(ctx, c.Image, spec.PullNever, previous(a.Image))
		for _, v := range container.ImageVolumesOf(pod, c) {
			if present && err == nil {
				present, err = scope.Find(ctx, v.Image.Reference, spec.PullNever)
			}
		}
		if present || err != nil {
			return nil, err
		}
	}
	for _, archive := range archives {
		imported, err := r.images.ImportFile(ctx, archive, func(p image.Progress) {
			progress(lifecycle.Progress{Archive: archive, Done: p.Bytes, Total: p.TotalBytes})
		})
		if err != nil {
			return nil, err
		}
		for _, img := range imported {
			references = append(references, img.Name)
		}
	}
	return references, nil
}

// FindImage checks that the image of a container and the images of the volumes that it mounts are present, so that no pull is needed
// according to their pull policies. If not, it returns a [lifecycle.FailureNotFound]. It makes no request to a registry.
func (r *Runtime) FindImage(ctx context.Context, pod *spec.Pod, a lifecycle.FindImage) (lifecycle.ImagePulled, error) {
	ctx = engine.Context(ctx)
	none := lifecycle.ImagePulled{}
	c, err := container.Find(pod, a.Container)
	if err != nil {
		return none, fmt.Errorf("find image: %w", err)
	}
	scope := r.images.In(pod.ArchivesOf(c)...)
	img, present, err := scope.FindAgain(ctx, c.Image, c.ImagePullPolicy, previous(a.Image))
	images := []used{{c.Image, img}}
	for _, v := range container.ImageVolumesOf(pod, c) {
		if present && err == nil {
			var mounted image.Image
			mounted, present, err = scope.FindAgain(ctx, v.Image.Reference, v.Image.PullPolicy, image.Previous{})
			images = append(images, used{v.Image.Reference, mounted})
		}
	}
	if err != nil {
		return none, imageFailure(ctx, err)
	}
	if !present {
		return none, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: fmt.Sprintf("image %q is not present", c.Image)}
	}
	found := lifecycle.ImagePulled{Container: a.Container, For: a.For, Image: identity(img)}
	if found.Shadows, err = shadows(ctx, scope, images, a.Image); err != nil {
		return none, imageFailure(ctx, err)
	}
	return found, nil
}

// NewestImage returns the image that a first run of a container would use now, if it is not pulled. See [image.Scope.Newest].
func (r *Runtime) NewestImage(ctx context.Context, pod *spec.Pod, name string) (img lifecycle.Image, ok bool, err error) {
	ctx = engine.Context(ctx)
	c, err := container.Find(pod, name)
	if err != nil {
		return lifecycle.Image{}, false, fmt.Errorf("newest image: %w", err)
	}
	if c.ImagePullPolicy == spec.PullAlways {
		return lifecycle.Image{}, false, nil
	}
	newest, ok, err := r.images.In(pod.ArchivesOf(c)...).Newest(ctx, c.Image)
	if err != nil {
		return lifecycle.Image{}, false, imageFailure(ctx, err)
	}
	return lifecycle.Image{ID: newest.ConfigDigest, Archive: newest.FromArchive}, ok, nil
}

// KeepImages keeps the content and the unpacked layers of images for a pod, whatever their names refer to, until the next call for the pod.
// Without images it releases them. An image that is not present is skipped. If nothing changes, nothing is written.
func (r *Runtime) KeepImages(ctx context.Context, pod string, images []lifecycle.Image) error {
	ctx = engine.Context(ctx)
	configs := make([]string, len(images))
	for i := range images {
		configs[i] = images[i].ID
	}
	released, err := r.images.Keep(ctx, pod, configs...)
	if released {
		r.garbage.Request()
	}
	if err != nil {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("keep images of pod %q: %w", pod, err))
	}
	return nil
}

// KeptImages returns the names of the pods for which images are kept, sorted. The pods may have been deleted.
func (r *Runtime) KeptImages(ctx context.Context) ([]string, error) {
	ctx = engine.Context(ctx)
	pods, err := r.images.Kept(ctx)
	if err != nil {
		return nil, engine.Failure(ctx, lifecycle.FailureRetry, "", fmt.Errorf("list kept images: %w", err))
	}
	return pods, nil
}

func identity(i image.Image) lifecycle.Image {
	return lifecycle.Image{ID: i.ConfigDigest, Archive: i.FromArchive}
}

func previous(i lifecycle.Image) image.Previous {
	return image.Previous{ConfigDigest: i.ID, FromArchive: i.Archive}
}

// pullFailure is the failure of a pull of the container's own image. Its message has the cause alone: events and explanations name the
// operation and the image before it.
func pullFailure(ctx context.Context, err error) error {
	e, ok := errors.AsType[*image.Error](err)
	if ok && (e.Reason == image.ReasonPull || e.Reason == image.ReasonSignature) && e.Err != nil {
		return lifecycle.Failure{Reason: lifecycle.Reason(e.Reason), Message: engine.Message(e.Err)}
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
		return lifecycle.Failure{Reason: lifecycle.Reason(e.Reason), Message: engine.Message(e)}
	}
	return engine.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonErrImagePull, err)
}
