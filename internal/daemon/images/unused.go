package images

import (
	"context"
	"slices"
)

// Facts returns all images, and who needs them. Unlike [Images.List] it fails if that is not certain.
func (i *Images) Facts(ctx context.Context) (Facts, error) {
	_, names, err := i.look(ctx, true)
	return wholes(names), err
}

// wholes returns the images that have these names.
func wholes(names Facts) Facts {
	list := names.Images
	names.Images = nil
	for n := range list {
		at := slices.IndexFunc(names.Images, func(w Whole) bool { return w.ID == list[n].ID })
		if at < 0 {
			names.Images = append(names.Images, list[n])
			continue
		}
		w := &names.Images[at]
		w.Records = append(w.Records, list[n].Records...)
		if name := list[n].Names[0]; !slices.Contains(w.Names, name) {
			w.Names = append(w.Names, name)
		}
	}
	return names
}

// Discard removes all names of an image and its content, unless something claims it by now. It reports whether the image was removed, and
// how many bytes were deleted from the disk.
func (i *Images) Discard(ctx context.Context, id string, respect Respect) (removed bool, freed int64, err error) {
	freed, err = i.store.Free(ctx, func() error {
		list, names, err := i.look(ctx, true)
		if err != nil {
			return err
		}
		all := wholes(names).Images
		if at := slices.IndexFunc(all, func(w Whole) bool { return w.ID == id }); at >= 0 {
			removed, err = i.remove(ctx, list, &all[at], respect)
		}
		return err
	})
	return removed, freed, err
}

// Sweep deletes content that nothing refers to, and returns its size.
func (i *Images) Sweep(ctx context.Context) (freed int64, err error) {
	return i.store.Free(ctx, func() error { return nil })
}
