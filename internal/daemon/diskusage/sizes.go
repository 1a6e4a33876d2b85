package diskusage

import (
	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
)

// part is the set of the blobs and layers of an image.
type part struct {
	blobs, layers map[string]bool
}

// partition returns the blobs and layers of each image.
func (v *survey) partition() []part {
	list := make([]part, len(v.images.Images))
	for n := range v.images.Images {
		list[n] = part{map[string]bool{}, map[string]bool{}}
		for _, record := range v.images.Images[n].Records {
			list[n].add(v.Images[record])
		}
	}
	return list
}

func (p part) add(parts image.Parts) {
	for _, blob := range parts.Blobs {
		p.blobs[blob] = true
	}
	for _, layer := range parts.Layers {
		p.layers[layer] = true
	}
}

// sizes returns the size of an image on the disk, and the part of it that other images have too.
func (v *survey) sizes(p part, all []part) (size, shared int64) {
	count := func(keys map[string]bool, sizes map[string]int64, of func(part) map[string]bool) {
		for key := range keys {
			size += sizes[key]
			owners := 0
			for _, other := range all {
				if of(other)[key] {
					owners++
				}
			}
			if owners > 1 {
				shared += sizes[key]
			}
		}
	}
	count(p.blobs, v.Blobs, func(p part) map[string]bool { return p.blobs })
	count(p.layers, v.Layers, func(p part) map[string]bool { return p.layers })
	return size, shared
}

// freed returns the sizes of the blobs and the layers that are deleted with the images for which remove is true, unless containers or
// images that are not removed have them too.
func (v *survey) freed(parts []part, remove func(n int) bool) (blobs, layers int64) {
	kept := part{map[string]bool{}, map[string]bool{}}
	for layer := range v.InUse {
		kept.layers[layer] = true
	}
	gone := part{map[string]bool{}, map[string]bool{}}
	for n, p := range parts {
		to := kept
		if remove(n) {
			to = gone
		}
		for key := range p.blobs {
			to.blobs[key] = true
		}
		for key := range p.layers {
			to.layers[key] = true
		}
	}
	for key := range gone.blobs {
		if !kept.blobs[key] {
			blobs += v.Blobs[key]
		}
	}
	for key := range gone.layers {
		if !kept.layers[key] {
			layers += v.Layers[key]
		}
	}
	return blobs, layers
}

// items returns the kinds of data.
func (v *survey) items(parts []part) []api.DiskUsageItem {
	removable := func(n int) bool { return !v.images.Used(&v.images.Images[n]) }
	used := func(p func(part) map[string]bool) map[string]bool {
		keys := map[string]bool{}
		for n := range parts {
			if !removable(n) {
				for key := range p(parts[n]) {
					keys[key] = true
				}
			}
		}
		return keys
	}
	images := api.DiskUsageItem{Type: "images", Total: len(v.images.Images), Size: sum(v.Blobs)}
	for n := range v.images.Images {
		if !removable(n) {
			images.Active++
		}
	}
	usedLayers := used(func(p part) map[string]bool { return p.layers })
	for layer := range v.InUse {
		usedLayers[layer] = true
	}
	layers := api.DiskUsageItem{Type: "layers", Total: len(v.Layers), Size: sum(v.Layers)}
	for layer := range v.Layers {
		if usedLayers[layer] {
			layers.Active++
		}
	}
	images.Reclaimable, layers.Reclaimable = v.freed(parts, removable)

	containers := api.DiskUsageItem{Type: "containers", Total: len(v.Containers)}
	for _, c := range v.Containers {
		containers.Size += c.Size
		if v.leftover[c.UID] {
			containers.Reclaimable += c.Size
		} else {
			containers.Active++
		}
	}
	volumes := api.DiskUsageItem{Type: "volumes", Total: len(v.volumes)}
	for n := range v.volumes {
		volumes.Size += v.volumes[n].Size
		if len(v.volumes[n].Pods) > 0 {
			volumes.Active++
		} else {
			volumes.Reclaimable += v.volumes[n].Size
		}
	}
	return []api.DiskUsageItem{
		images, layers, containers, volumes, v.ofPods("podVolumes", v.PodVolumes), v.ofPods("logs", v.Logs),
		{Type: "state", Size: v.State},
		{Type: "journal", Size: v.Journal},
	}
}

// ofPods returns the kind of data that each pod has in a directory of its own.
func (v *survey) ofPods(kind string, sizes map[string]int64) api.DiskUsageItem {
	item := api.DiskUsageItem{Type: kind, Total: len(sizes), Size: sum(sizes)}
	for uid, size := range sizes {
		if v.leftover[uid] {
			item.Reclaimable += size
		} else {
			item.Active++
		}
	}
	return item
}

func sum(sizes map[string]int64) (total int64) {
	for _, size := range sizes {
		total += size
	}
	return total
}
