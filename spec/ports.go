package spec

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
)

// HostPorts returns the ports of all containers that have a host port. Init containers that run one after the other can have the same
// one, which is that of the last, or of a container that runs beside it.
func (p *Pod) HostPorts() []ContainerPort {
	var ports []ContainerPort
	for _, port := range p.HostPortFields() {
		ports = append(ports, port)
	}
	return ports
}

// HostPortFields yields the ports of [Pod.HostPorts] with the path of the hostPort field.
func (p *Pod) HostPortFields() iter.Seq2[string, ContainerPort] {
	lists := []struct {
		name       string
		containers []Container
	}{{"initContainers", p.InitContainers}, {"containers", p.Containers}, {"ephemeralContainers", p.EphemeralContainers}}
	return func(yield func(string, ContainerPort) bool) {
		for _, list := range lists {
			for i := range list.containers {
				c := &list.containers[i]
				for j, port := range c.Ports {
					if port.HostPort == 0 || p.runsAlone(c) && p.takenAfter(c, port) {
						continue
					}
					if !yield(fmt.Sprintf("%s[%d].ports[%d].hostPort", list.name, i, j), port) {
						return
					}
				}
			}
		}
	}
}

// runsAlone reports whether c is an init container that ends before the next container starts.
func (p *Pod) runsAlone(c *Container) bool {
	for i := range p.InitContainers {
		if &p.InitContainers[i] == c {
			return !c.IsSidecar()
		}
	}
	return false
}

// takenAfter reports whether a container that starts after an init container, or a sidecar, has its host port.
func (p *Pod) takenAfter(c *Container, port ContainerPort) bool {
	after := false
	for other := range p.EveryContainer() {
		if other != c && (after || other.IsSidecar()) && slices.ContainsFunc(other.Ports, port.Overlaps) {
			return true
		}
		after = after || other == c
	}
	return false
}

// Overlaps reports whether two host ports conflict: they have the same number and protocol, and a common address.
// No address means all addresses, 0.0.0.0 all IPv4 addresses and :: all IPv6 addresses.
func (p ContainerPort) Overlaps(q ContainerPort) bool {
	if p.HostPort != q.HostPort || p.Protocol != q.Protocol {
		return false
	}
	a, errA := netip.ParseAddr(p.HostIP)
	b, errB := netip.ParseAddr(q.HostIP)
	switch {
	case errA != nil || errB != nil: // no address
		return true
	case a.Is4() != b.Is4():
		return false
	}
	return a == b || a.IsUnspecified() || b.IsUnspecified()
}
