package images

import (
	"maps"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
)

// detail returns an image with its configuration.
func detail(img *api.Image, d *image.Detail) api.ImageDetail {
	c := &d.Config.Config
	out := api.ImageDetail{
		Image: *img, Platforms: d.Platforms, Author: d.Config.Author, Created: d.Config.Created, Labels: c.Labels,
		Config: api.ImageConfig{
			User: c.User, Env: c.Env, Entrypoint: c.Entrypoint, Cmd: c.Cmd, WorkingDir: c.WorkingDir, StopSignal: c.StopSignal,
			ExposedPorts: slices.Sorted(maps.Keys(c.ExposedPorts)), Volumes: slices.Sorted(maps.Keys(c.Volumes)),
		},
		Layers: []api.ImageLayer{}, History: history(d.Config.History, d.Layers),
	}
	if out.Platforms == nil {
		out.Platforms = []string{}
	}
	for _, l := range d.Layers {
		out.Layers = append(out.Layers, api.ImageLayer{Digest: l.Digest.String(), MediaType: l.MediaType, Size: l.Size})
	}
	return out
}

// history returns the steps with the layers that they added. A configuration need not have steps, or not for all layers.
func history(steps []ocispec.History, layers []ocispec.Descriptor) (list []api.ImageHistory) {
	for _, h := range steps {
		step := api.ImageHistory{Created: h.Created, CreatedBy: h.CreatedBy, Comment: h.Comment}
		if !h.EmptyLayer && len(layers) > 0 {
			step.Size, layers = layers[0].Size, layers[1:]
		}
		list = append(list, step)
	}
	for _, l := range layers {
		list = append(list, api.ImageHistory{Size: l.Size})
	}
	return list
}
