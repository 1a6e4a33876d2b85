package images

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/podstead/podstead/runtime/image"
)

// Whole is an image with all its names. Its content is deleted when the last name is removed.
type Whole struct {
	// ID is the digest of the image's configuration. An image whose content is damaged is its record.
	ID    string
	Names []string // sorted
	// Size is that of the compressed content in bytes.
	Size      int64
	CreatedAt time.Time // of the oldest name
	// Used is set if a pod, a pod file, a generation or an image directory needs one of the names, or if it was imported for a pod a
	// short time ago.
	Used bool
	// ByHand is set if a person has pulled or imported the image.
	ByHand bool

	Records []string // in the store
}

// Removable reports whether nothing uses the image and, without byHand, no person has requested it.
func (w *Whole) Removable(byHand bool) bool { return !w.Used && (byHand || !w.ByHand) }

// Wholes returns all images. Unlike [Images.List] it fails if it is not certain what uses them.
func (i *Images) Wholes(ctx context.Context) ([]Whole, error) {
	list, err := i.find(ctx, true)
	if err != nil {
		return nil, err
	}
	return i.wholes(list), nil
}

// wholes returns the images that have these names.
func (i *Images) wholes(list []found) []Whole {
	running := i.running()
	index := map[string]int{}
	var wholes []Whole
	for n := range list {
		f := &list[n]
		id := cmp.Or(f.ID, f.entry.Record)
		at, known := index[id]
		if !known {
			at = len(wholes)
			index[id] = at
			wholes = append(wholes, Whole{ID: id, Size: f.Size, CreatedAt: f.CreatedAt, Used: running[id]})
		}
		w := &wholes[at]
		w.Records = append(w.Records, f.entry.Record)
		if !slices.Contains(w.Names, f.Name) {
			w.Names = append(w.Names, f.Name)
		}
		if f.CreatedAt.Before(w.CreatedAt) {
			w.CreatedAt = f.CreatedAt
		}
		w.Used = w.Used || f.Used() || f.protected != ""
		w.ByHand = w.ByHand || f.Requested != ""
	}
	return wholes
}

// again returns images that were found before, some of which may have been removed, with what uses or would use them now.
func (i *Images) again(ctx context.Context, before []found) ([]found, error) {
	entries := make([]image.Entry, len(before))
	for n := range before {
		entries[n] = *before[n].entry
	}
	users, err := i.users(ctx, true)
	if err != nil {
		return nil, err
	}
	list, err := match(entries, users)
	if err != nil {
		return nil, err
	}
	return list, i.protect(ctx, list)
}

// running returns the images of containers of pods that are not at rest. Their names may refer to other images now.
func (i *Images) running() map[string]bool {
	ids := map[string]bool{}
	pods := i.pods.Pods()
	for n := range pods {
		if pods[n].AtRest {
			continue
		}
		for _, c := range pods[n].Facts.Containers {
			ids[c.Image.ID] = true
		}
	}
	delete(ids, "")
	return ids
}

// Discard removes all names of an image and its content, unless something uses it now or, without byHand, a person has requested it. It
// restores the names if something has begun to use the image meanwhile. It reports whether the image was removed, and how many bytes were
// deleted from the disk.
func (i *Images) Discard(ctx context.Context, id string, byHand bool) (removed bool, freed int64, err error) {
	freed, err = i.store.Free(ctx, func() error {
		before, err := i.find(ctx, true)
		if err != nil {
			return err
		}
		list := i.wholes(before)
		at := slices.IndexFunc(list, func(w Whole) bool { return w.ID == id })
		if at < 0 || !list[at].Removable(byHand) {
			return nil
		}
		removed, err = i.store.ForgetUnless(ctx, list[at].Records, func() (bool, error) {
			now, err := i.again(ctx, before)
			if err != nil {
				return true, err
			}
			list := i.wholes(now)
			return slices.ContainsFunc(list, func(w Whole) bool { return w.ID == id && w.Used }), nil
		})
		return err
	})
	return removed, freed, err
}

// Sweep deletes content that nothing refers to, and returns its size.
func (i *Images) Sweep(ctx context.Context) (freed int64, err error) {
	return i.store.Free(ctx, func() error { return nil })
}

// protect returns the images with the reasons why they are protected.
func (i *Images) protect(ctx context.Context, list []found) error {
	if i.protected == nil {
		return nil
	}
	reasons, err := i.protected(ctx)
	if err != nil {
		return err
	}
	for n := range list {
		f := &list[n]
		f.protected = cmp.Or(reasons[f.Name], reasons[f.Digest], reasons[f.ID])
	}
	return nil
}
