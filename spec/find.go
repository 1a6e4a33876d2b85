package spec

import "fmt"

// Container returns the container of this name among the init, the app and the ephemeral containers, or nil. It points into the pod.
func (p *Pod) Container(name string) *Container {
	for c := range p.everyContainer() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// PortNumber returns the number of a port that a probe or a hook of this container names, from 1 to 65535.
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
			return 0, fmt.Errorf("container %s: it has no port %q", c.Name, p.Name)
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("container %s: %d is no port number", c.Name, number)
	}
	return int(number), nil
}
