package spec

import (
	"fmt"
	"iter"
	"net/netip"
)

// HostPorts returns the ports of all containers that are ports of the machine.
func (p *Pod) HostPorts() []ContainerPort {
	var ports []ContainerPort
	for _, port := range p.HostPortFields() {
		ports = append(ports, port)
	}
	return ports
}

// HostPortFields yields the ports of [Pod.HostPorts], each with the path of its hostPort in the pod file.
func (p *Pod) HostPortFields() iter.Seq2[string, ContainerPort] {
	lists := []struct {
		name       string
		containers []Container
	}{{"initContainers", p.InitContainers}, {"containers", p.Containers}, {"ephemeralContainers", p.EphemeralContainers}}
	return func(yield func(string, ContainerPort) bool) {
		for _, list := range lists {
			for i := range list.containers {
				for j, port := range list.containers[i].Ports {
					if port.HostPort != 0 && !yield(fmt.Sprintf("%s[%d].ports[%d].hostPort", list.name, i, j), port) {
						return
					}
				}
			}
		}
	}
}

// Overlaps reports whether two host ports cannot both be had: the same number and protocol, on an address that both have.
// No address means all of them, 0.0.0.0 all of IPv4 and :: all of IPv6.
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
