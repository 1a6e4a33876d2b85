package network

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/podstead/podstead/spec"
)

// Port is a port of the host that is forwarded to a pod (hostPort in the Kubernetes Pod API).
type Port struct {
	// HostIP is the host address of the port. The zero value means all addresses; 0.0.0.0 and :: mean all addresses of
	// one family.
	HostIP netip.Addr `json:"hostIP,omitzero"`
	// HostPort is the port on the host, ContainerPort the port in the pod. Neither is 0.
	HostPort      uint16 `json:"hostPort"`
	ContainerPort uint16 `json:"containerPort"`
	// Protocol is TCP, UDP or SCTP; empty means TCP.
	Protocol spec.Protocol `json:"protocol,omitempty"`
}

// protocolNumbers are the IP protocol numbers of the transport protocols. Empty means TCP.
var protocolNumbers = map[spec.Protocol]uint8{"": 6, spec.ProtocolTCP: 6, spec.ProtocolUDP: 17, spec.ProtocolSCTP: 132}

// String returns the port in the usual notation, such as 127.0.0.1:8080/TCP.
func (p Port) String() string {
	protocol := cmp.Or(p.Protocol, spec.ProtocolTCP)
	if !p.HostIP.IsValid() {
		return fmt.Sprintf("%d/%s", p.HostPort, protocol)
	}
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(p.HostIP, p.HostPort), protocol)
}

// Validate reports the first invalid field.
func (p Port) Validate() error {
	if _, known := protocolNumbers[p.Protocol]; !known {
		return fmt.Errorf("host port %s: protocol is not supported", p)
	}
	if p.HostPort == 0 || p.ContainerPort == 0 {
		return fmt.Errorf("host port %s to container port %d: must not be 0", p, p.ContainerPort)
	}
	if p.HostIP.Zone() != "" || p.HostIP.Is4In6() {
		return fmt.Errorf("host port %s: address must be an IPv4 or IPv6 address without zone", p)
	}
	return nil
}

// Overlaps reports whether a packet could match both ports.
func (p Port) Overlaps(q Port) bool {
	if p.HostPort != q.HostPort || protocolNumbers[p.Protocol] != protocolNumbers[q.Protocol] {
		return false
	}
	a, b := p.HostIP, q.HostIP
	switch {
	case !a.IsValid() || !b.IsValid():
		return true
	case a.Is4() != b.Is4():
		return false
	}
	return a == b || a.IsUnspecified() || b.IsUnspecified()
}

// Serves reports whether the port is on IPv4 addresses, or with is4 false on IPv6 addresses.
func (p Port) Serves(is4 bool) bool { return !p.HostIP.IsValid() || p.HostIP.Is4() == is4 }
