package images

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
)

// Remove implements [server.Images]. All images that the name means are removed, or none.
func (i *Images) Remove(ctx context.Context, name, platform string, force bool) (api.RemovedImages, error) {
	var removed api.RemovedImages
	var err error
	removed.Freed, err = i.store.Free(ctx, func() error {
		list, err := i.find(ctx, true)
		if err != nil {
			return err
		}
		chosen, err := i.choose(list, name, platform)
		if err != nil {
			return err
		}
		if err := oneName(name, chosen); err != nil {
			return err
		}
		for n := range chosen {
			if err := inUse(&chosen[n].Image, force); err != nil {
				return err
			}
		}
		for n := range chosen {
			if err := i.store.Forget(ctx, chosen[n].entry.Record); err != nil && !image.IsNotFound(err) {
				return err
			}
			removed.Items = append(removed.Items, chosen[n].Image)
		}
		return nil
	})
	if err != nil {
		return removed, failure("remove image", name, err)
	}
	return removed, nil
}

// inUse returns an error for an image that must not be removed.
func inUse(img *api.Image, force bool) error {
	e := &api.Error{Status: http.StatusConflict}
	switch {
	case len(img.Running) > 0:
		e.Message = fmt.Sprintf("remove image %q: it is in use by %s", img.Name, pods(img.Running))
		e.Hint = "delete the pod with podstead delete " + img.Running[0]
	case img.File != "":
		e.Message = fmt.Sprintf("remove image %q: it is in the archive %s of an image directory", img.Name, img.File)
		e.Hint = "remove the archive first"
	case force:
		return nil
	case len(img.Pods) > 0:
		e.Message = fmt.Sprintf("remove image %q: %s, which does not run, uses it", img.Name, pods(img.Pods))
		e.Hint = "delete the pod with podstead delete " + img.Pods[0] + ", or remove the name of the image with --force"
	case len(img.Generations) > 0:
		e.Message = fmt.Sprintf("remove image %q: it is kept for a rollback of %s", img.Name, pods(img.Generations))
		e.Hint = "remove the name with --force; the content remains until the rollback does not need it"
	default:
		return nil
	}
	return e
}

func pods(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("pod %q", names[0])
	}
	return "pods " + strings.Join(names, ", ")
}

// Prune implements [server.Images]. It looks at the pods again before each removal. What was removed before an error is deleted from the
// disk too.
func (i *Images) Prune(ctx context.Context, all, dryRun bool) (api.RemovedImages, error) {
	var removed api.RemovedImages
	var failed error
	prune := func() error {
		removed.Items, failed = i.prune(ctx, all, dryRun)
		if len(removed.Items) == 0 {
			return failed
		}
		return nil
	}
	var err error
	if dryRun {
		err = prune()
	} else {
		removed.Freed, err = i.store.Free(ctx, prune)
	}
	if err := cmp.Or(failed, err); err != nil {
		return removed, failure("prune images", "", err)
	}
	return removed, nil
}

// prune removes the names of the images that nothing uses. With an error it returns those that it has removed.
func (i *Images) prune(ctx context.Context, all, dryRun bool) (removed []api.Image, err error) {
	list, err := i.find(ctx, true)
	if err != nil {
		return nil, err
	}
	for n := range list {
		if !prunable(&list[n], all) {
			continue
		}
		gone := dryRun
		if !dryRun {
			if gone, err = i.pruneOne(ctx, list, n, all); err != nil {
				return removed, err
			}
		}
		if gone {
			removed = append(removed, list[n].Image)
		}
	}
	return removed, nil
}

// prunable reports whether nothing uses an image and, without all, no person has requested it.
func prunable(img *found, all bool) bool {
	return !img.Used() && img.protected == "" && (all || img.Requested == "")
}

// pruneOne removes one of the images that were read before, unless a pod has begun to use it or a person has requested it meanwhile.
func (i *Images) pruneOne(ctx context.Context, before []found, n int, all bool) (bool, error) {
	record := before[n].entry.Record
	if !all {
		requested, err := i.store.Requested(ctx)
		if err != nil {
			return false, err
		}
		if requested[record] {
			return false, nil
		}
	}
	used := func() (bool, error) {
		now, err := i.again(ctx, before)
		return err != nil || now[n].Used() || now[n].protected != "", err
	}
	if is, err := used(); is || err != nil {
		return false, err
	}
	return i.store.ForgetUnless(ctx, []string{record}, used)
}
