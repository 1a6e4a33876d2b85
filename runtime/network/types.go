package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

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

// protocols are the numbers of the transport protocols in IP.
var protocols = map[spec.Protocol]uint8{"": 6, spec.ProtocolTCP: 6, spec.ProtocolUDP: 17, spec.ProtocolSCTP: 132}

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

func (p Port) check() error {
	if _, known := protocols[p.Protocol]; !known {
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
func (p Port) overlaps(q Port) bool {
	if p.HostPort != q.HostPort || protocols[p.Protocol] != protocols[q.Protocol] {
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
func (p Port) serves(is4 bool) bool { return !p.HostIP.IsValid() || p.HostIP.Is4() == is4 }

// Request is what a pod needs of the network.
type Request struct {
	// UID identifies the pod, PodName is what its address is remembered by.
	UID, PodName string
	// Names are those by which other pods find it, such as its host name; the pod's name is always one.
	Names []string
	// NetnsPath is the pod's network namespace, with its loopback up. Empty means the machine's own (hostNetwork): then
	// the ports are only held.
	NetnsPath string
	// Ports are the ports of the machine that the pod has.
	Ports []Port
}

func (r *Request) check() error {
	if r.UID == "" || r.PodName == "" {
		return errors.New("a pod needs a UID and a name")
	}
	for i, p := range r.Ports {
		if err := p.check(); err != nil {
			return err
		}
		if slices.ContainsFunc(r.Ports[:i], p.overlaps) {
			return &ConflictError{Port: p, Holder: r.PodName, HolderUID: r.UID}
		}
	}
	return nil
}

// Result is what a pod has got: its address of IPv4 and, where the machine has IPv6, one of that after it. A pod in the
// machine's network has none of its own.
type Result struct{ IPs []netip.Addr }

// Peer is a pod as the others see it.
type Peer struct {
	UID, PodName string
	// IPs are where other pods reach it, IPv4 first. For a pod in the machine's network that is the machine's address on
	// the bridge, and nothing as long as there is no bridge.
	IPs []netip.Addr
	// Names are its own, its pod name first. Another pod's name is never among them.
	Names []string
}

// ConflictError says that a host port is taken, and by whom: a pod, or a process of the machine.
type ConflictError struct {
	// Port is the one that was asked for.
	Port Port
	// Holder and HolderUID are the pod that has it. They are empty where a process listens there.
	Holder, HolderUID string
	// PID and Process are that process's number and name, or zero where it could not be found.
	PID     int
	Process string
}

func (e *ConflictError) Error() string {
	switch {
	case e.Holder != "":
		return fmt.Sprintf("host port %s: pod %q has it", e.Port, e.Holder)
	case e.PID != 0:
		return fmt.Sprintf("host port %s: %s (process %s) listens there", e.Port, e.Process, strconv.Itoa(e.PID))
	}
	return fmt.Sprintf("host port %s: a process of this machine listens there", e.Port)
}
