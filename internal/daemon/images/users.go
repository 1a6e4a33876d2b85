package images

import (
	"context"
	"errors"
	"slices"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// claims returns who needs which of the images. If strict, it fails if the pods directory cannot be listed. What keeps an image is made
// before what has kept it until then ends. So it looks for them in the order in which they follow each other: files, pods that are planned,
// pods, and the generations that are stored.
func (i *Images) claims(ctx context.Context, entries []image.Entry, strict bool) (claims []image.Claim, err error) {
	add := func(pod *spec.Pod, by image.Claimant) error {
		records, err := records(pod, entries)
		for _, record := range records {
			claims = append(claims, image.Claim{By: by, Who: pod.Name, Image: record})
		}
		return err
	}
	files, err := i.files.Definitions(ctx)
	if err != nil && (strict || ctx.Err() != nil) {
		return nil, err
	}
	var errs []error
	for _, pod := range files {
		errs = append(errs, add(pod, image.Pod))
	}
	for _, pod := range i.pods.Planned() { // before the pods: a pod is in at least one of the two
		errs = append(errs, add(pod, image.RunningPod))
	}
	pods := i.pods.Pods()
	for n := range pods {
		by := image.RunningPod
		if pods[n].AtRest {
			by = image.Pod
		}
		errs = append(errs, add(pods[n].Pod, by))
		for _, c := range pods[n].Facts.Containers {
			if by == image.RunningPod && c.Image.ID != "" {
				claims = append(claims, image.Claim{By: image.Container, Who: pods[n].Pod.Name, Image: c.Image.ID})
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	stored, err := i.store.Claims(ctx)
	return append(claims, stored...), err
}

// references returns the images that a pod names.
func references(pod *spec.Pod) []string {
	var list []string
	for c := range pod.EveryContainer() {
		list = append(list, c.Image)
	}
	for n := range pod.Volumes {
		if v := pod.Volumes[n].Image; v != nil {
			list = append(list, v.Reference)
		}
	}
	return list
}

// records returns the records of the images that a pod uses, in the same order of precedence as [image.Scope].
func records(pod *spec.Pod, entries []image.Entry) (list []string, err error) {
	for _, ref := range references(pod) {
		full, err := image.FullName(ref)
		if err != nil {
			continue // the pod has no such image
		}
		found, err := record(pod, entries, full)
		if err != nil {
			return nil, err
		}
		if found != "" {
			list = append(list, found)
		}
	}
	return list, nil
}

// record returns the record of an image for a pod; empty: there is none.
func record(pod *spec.Pod, entries []image.Entry, full string) (string, error) {
	for _, same := range [...]func(e *image.Entry) bool{
		func(e *image.Entry) bool { return e.Name == full },
		func(e *image.Entry) bool { return image.Refers(full, &e.Image) },
	} {
		for _, archive := range slices.Backward(pod.ImageArchives) {
			for n := range entries {
				e := &entries[n]
				if !e.Scoped || !same(e) {
					continue
				}
				record, err := image.ArchiveRecord(archive, e.Name)
				if err != nil {
					return "", err
				}
				if record == e.Record {
					return record, nil
				}
			}
		}
		for n := range entries {
			if e := &entries[n]; !e.Scoped && !e.Foreign && same(e) {
				return e.Record, nil
			}
		}
	}
	return "", nil
}
