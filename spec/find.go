package spec

import (
	"fmt"
	"iter"
	"slices"
)

// Container returns the init, app or ephemeral container with a name, or nil. The result points into the pod.
func (p *Pod) Container(name string) *Container {
	for c := range p.EveryContainer() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ArchivesOf returns the archives that can contain the image of a container.
func (p *Pod) ArchivesOf(c *Container) []string {
	return slices.Concat(p.ImageArchives, c.ImageArchives)
}

// Mounted returns the pod with those of its volumes only that a container mounts. As in the kubelet, no other volume is set up.
func (p *Pod) Mounted() *Pod { return p.withVolumes(p.EveryContainer()) }

// HasContent reports whether the content of a volume may change while the pod runs, with that of config maps, secrets and fields.
func (p *Pod) HasContent() bool {
	return slices.ContainsFunc(p.Volumes, func(v Volume) bool {
		return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil
	})
}

// MountedBy is [Pod.Mounted] for one container.
func (p *Pod) MountedBy(c *Container) *Pod {
	return p.withVolumes(func(yield func(*Container) bool) { yield(c) })
}

// withVolumes returns the pod with the volumes that containers mount.
func (p *Pod) withVolumes(containers iter.Seq[*Container]) *Pod {
	mounted := map[string]bool{}
	for c := range containers {
		for i := range c.VolumeMounts {
			mounted[c.VolumeMounts[i].Name] = true
		}
	}
	result := *p
	result.Volumes = nil
	for i := range p.Volumes {
		if mounted[p.Volumes[i].Name] {
			result.Volumes = append(result.Volumes, p.Volumes[i])
		}
	}
	return &result
}

// PortNumber resolves the port of a probe or a hook of the container to a number from 1 to 65535.
func (c *Container) PortNumber(p Port) (int, error) {
	number := p.Number
	if p.Name != "" {
		number = 0
		for _, port := range c.Ports {
			if port.Name == p.Name {
				number = port.ContainerPort
			}
		}
		if number == 0 {
			return 0, fmt.Errorf("container %q: port %q not found", c.Name, p.Name)
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("container %q: port %d: must be between 1 and 65535, inclusive", c.Name, number)
	}
	return int(number), nil
}
