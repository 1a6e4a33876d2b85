package spec

import (
	"fmt"
	"slices"
)

// Container returns the init, app or ephemeral container with a name, or nil. The result points into the pod.
func (p *Pod) Container(name string) *Container {
	for c := range p.everyContainer() {
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
