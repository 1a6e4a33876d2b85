package images

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
)

// Remove implements [server.Images]. All images that the name means are removed, or none.
func (i *Images) Remove(ctx context.Context, name, platform string, force bool) (api.RemovedImages, error) {
	var removed api.RemovedImages
	var err error
	removed.Freed, err = i.store.Free(ctx, func() error {
		list, names, err := i.look(ctx, true)
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
			if err := inUse(&names, &chosen[n], force); err != nil {
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
func inUse(names *Facts, img *found, force bool) error {
	respect := removeName
	if force {
		respect = forceName
	}
	claim, claimed := names.Claimed(&img.whole, respect)
	if !claimed {
		return nil
	}
	e := &api.Error{Status: http.StatusConflict, Message: fmt.Sprintf("remove image %q: ", img.Name)}
	switch claim.By {
	case image.RunningPod:
		e.Message += "it is in use by " + pods(img.Running)
		e.Hint = "delete the pod with podstead delete " + img.Running[0]
	case image.Directory:
		e.Message += fmt.Sprintf("it is in the archive %s of an image directory", img.File)
		e.Hint = "remove the archive first"
	case image.Pod:
		e.Message += pods(img.Pods) + ", which does not run, uses it"
		e.Hint = "delete the pod with podstead delete " + img.Pods[0] + ", or remove the name of the image with --force"
	case image.Generation, image.Import, image.Container, image.Person: // of these, it respects generations only
		e.Message += "it is kept for a rollback of " + pods(img.Generations)
		e.Hint = "remove the name with --force; the content remains until the rollback does not need it"
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
	list, names, err := i.look(ctx, true)
	if err != nil {
		return nil, err
	}
	rule := Rule{Respect: pruneNames, Low: 100}
	if all {
		rule.Respect = pruneAllNames
	}
	for _, r := range Keep(&names, rule) {
		gone := dryRun
		if !dryRun {
			if gone, err = i.remove(ctx, list, &names.Images[r.Image], rule.Respect); err != nil {
				return removed, err
			}
		}
		if gone {
			removed = append(removed, list[r.Image].Image)
		}
	}
	return removed, nil
}

// remove removes names of an image that was found before, unless something claims it by now. It looks at the claims before and after: it
// restores the names if a pod has begun to use the image meanwhile. It reports whether they were removed.
func (i *Images) remove(ctx context.Context, before []found, w *Whole, respect Respect) (bool, error) {
	entries := make([]image.Entry, len(before))
	for n := range before {
		entries[n] = *before[n].entry
	}
	claimed := func() (bool, error) {
		claims, err := i.claims(ctx, entries, true)
		now := Facts{Now: time.Now(), Claims: claims}
		_, is := now.Claimed(w, respect)
		return is || err != nil, err
	}
	if is, err := claimed(); is || err != nil {
		return false, err
	}
	return i.store.ForgetUnless(ctx, w.Records, claimed)
}
