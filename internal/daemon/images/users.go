package images

import (
	"context"
	"slices"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// user is a definition of a pod.
type user struct {
	pod     *spec.Pod
	running bool
}

// users returns the definitions of all pods and of the files of the pods directory. If strict, it fails if the directory cannot be listed.
func (i *Images) users(ctx context.Context, strict bool) ([]user, error) {
	var list []user
	files, err := i.files.Definitions(ctx)
	if err != nil && (strict || ctx.Err() != nil) {
		return nil, err
	}
	for _, pod := range files {
		list = append(list, user{pod, false})
	}
	for _, pod := range i.pods.Planned() { // before the pods: a pod is in at least one of the two
		list = append(list, user{pod, true})
	}
	pods := i.pods.Pods()
	for n := range pods {
		list = append(list, user{pods[n].Pod, !pods[n].AtRest})
	}
	return list, nil
}

// references returns the images that a pod names.
func references(pod *spec.Pod) []string {
	var list []string
	for _, containers := range [...][]spec.Container{pod.InitContainers, pod.Containers, pod.EphemeralContainers} {
		for n := range containers {
			list = append(list, containers[n].Image)
		}
	}
	for n := range pod.Volumes {
		if v := pod.Volumes[n].Image; v != nil {
			list = append(list, v.Reference)
		}
	}
	return list
}

// records returns the records of the images that a pod uses, in the same order of precedence as [image.Scope].
func (u *user) records(entries []image.Entry) ([]string, error) {
	var records []string
	for _, ref := range references(u.pod) {
		full, err := image.FullName(ref)
		if err != nil {
			continue // the pod has no such image
		}
		record, err := u.record(entries, full)
		if err != nil {
			return nil, err
		}
		if record != "" {
			records = append(records, record)
		}
	}
	return records, nil
}

// record returns the record of an image for a pod; empty: there is none.
func (u *user) record(entries []image.Entry, full string) (string, error) {
	for _, same := range [...]func(e *image.Entry) bool{
		func(e *image.Entry) bool { return e.Name == full },
		func(e *image.Entry) bool { return image.Refers(full, &e.Image) },
	} {
		for _, archive := range slices.Backward(u.pod.ImageArchives) {
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
