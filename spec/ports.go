package spec

import "net/netip"

// HostPorts returns the ports of all containers that are ports of the machine.
func (p *Pod) HostPorts() []ContainerPort {
	var ports []ContainerPort
	for c := range p.everyContainer() {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				ports = append(ports, port)
			}
		}
	}
	return ports
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
