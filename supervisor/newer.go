package supervisor

import (
	"context"
	"slices"
	"strconv"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// NewerImages returns the images that containers of a pod would use if the pod were created now with a definition, by container, as far as
// they differ from those that the containers use: an image archive was replaced, or an image was imported. Images that are pulled are not
// compared, and neither are those of containers that get another reference. It changes nothing.
func (s *Supervisor) NewerImages(ctx context.Context, pod *spec.Pod) (map[string]lifecycle.Image, error) {
	running, exists := s.Pod(pod.Name)
	if !exists {
		return map[string]lifecycle.Image{}, nil
	}
	return s.newerImages(ctx, &running, pod)
}

func (s *Supervisor) newerImages(ctx context.Context, running *Snapshot, to *spec.Pod) (map[string]lifecycle.Image, error) {
	newer := map[string]lifecycle.Image{}
	for _, c := range slices.Concat(to.InitContainers, to.Containers) {
		now := running.Pod.Container(c.Name)
		used := running.Facts.Containers[c.Name].Image
		if now == nil || now.Image != c.Image || used.ID == "" {
			continue
		}
		type found struct {
			image lifecycle.Image
			ok    bool
		}
		f, err := guard.Call(ctx, cleanupTimeout, s.shared.log, func(ctx context.Context) (f found, err error) {
			f.image, f.ok, err = s.shared.runtime.NewestImage(ctx, to, c.Name)
			return f, err
		})
		if err != nil {
			return nil, err
		}
		if f.ok && f.image.ID != used.ID {
			newer[c.Name] = f.image
		}
	}
	return newer, nil
}

// ImageChanges returns the changes of a pod whose containers get images: each that differs from the one that its container uses. Containers
// that only one definition has, and those with another reference, have a change of the definition instead.
func ImageChanges(running *Snapshot, to *spec.Pod, images map[string]lifecycle.Image) []change.Change {
	return imageChanges(running.Pod, to, running.Facts, images)
}

func imageChanges(from, to *spec.Pod, f lifecycle.Facts, images map[string]lifecycle.Image) (changes []change.Change) {
	for kind, list := range map[string][]spec.Container{"initContainers": to.InitContainers, "containers": to.Containers} {
		for i := range list {
			c, image := &list[i], images[list[i].Name]
			now, used := from.Container(c.Name), f.Containers[c.Name].Image
			if now == nil || now.Image != c.Image || used.ID == "" || image.ID == "" || image.ID == used.ID {
				continue
			}
			path := kind + "[" + strconv.Itoa(i) + "].image"
			changes = append(changes, change.OfImage(path, c, kind == "initContainers", used.ID, image.ID))
		}
	}
	change.Sort(changes)
	return changes
}
