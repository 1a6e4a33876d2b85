package hostport

import (
	"fmt"
	"net/netip"

	"github.com/podstead/podstead/spec"
)

// Port is a port of the machine that leads into a pod (hostPort of the Kubernetes Pod API).
type Port struct {
	// HostIP is the machine's address that the port is on. The zero value means all of both families; 0.0.0.0 and ::
	// mean all of one.
	HostIP netip.Addr `json:"hostIP,omitzero"`
	// HostPort is the port on the machine, ContainerPort the one in the pod. Neither is 0.
	HostPort      uint16 `json:"hostPort"`
	ContainerPort uint16 `json:"containerPort"`
	// Protocol is TCP, UDP or SCTP; empty means TCP.
	Protocol spec.Protocol `json:"protocol,omitempty"`
}

// protocolNumbers are the numbers of the transport protocolNumbers in IP.
var protocolNumbers = map[spec.Protocol]uint8{"": 6, spec.ProtocolTCP: 6, spec.ProtocolUDP: 17, spec.ProtocolSCTP: 132}

// String is the port as people write it, such as 127.0.0.1:8080/TCP.
func (p Port) String() string {
	protocol := p.Protocol
	if protocol == "" {
		protocol = spec.ProtocolTCP
	}
	if !p.HostIP.IsValid() {
		return fmt.Sprintf("%d/%s", p.HostPort, protocol)
	}
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(p.HostIP, p.HostPort), protocol)
}

func (p Port) Validate() error {
	if _, known := protocolNumbers[p.Protocol]; !known {
		return fmt.Errorf("host port %s: unknown protocol", p)
	}
	if p.HostPort == 0 || p.ContainerPort == 0 {
		return fmt.Errorf("host port %s to port %d of the pod: no port is 0", p, p.ContainerPort)
	}
	if p.HostIP.Zone() != "" || p.HostIP.Is4In6() {
		return fmt.Errorf("host port %s: the address must be plain IPv4 or IPv6", p)
	}
	return nil
}

// overlaps reports whether one packet could be for both ports.
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

// serves reports whether the port is on addresses of IPv4, or else of IPv6.
func (p Port) Serves(is4 bool) bool { return !p.HostIP.IsValid() || p.HostIP.Is4() == is4 }

// ProtocolNumber returns the IP protocol number of a transport protocol, or 0 if it is not supported. Empty means TCP.
func ProtocolNumber(p spec.Protocol) uint8 { return protocolNumbers[p] }
