package network

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/podstead/podstead/runtime/network/diagnose"
	"github.com/podstead/podstead/runtime/network/hostport"
	"github.com/podstead/podstead/runtime/network/subnet"
)

// Port is a port of the host that leads into a pod.
type Port = hostport.Port

// Finding is a condition of the host that breaks the pod network.
type Finding = diagnose.Finding

// Request is what a pod needs of the network.
type Request struct {
	// UID identifies the pod, PodName is what its address is remembered by.
	UID, PodName string
	// Names are those by which other pods find it, such as its host name; the pod's name is always one.
	Names []string
	// NetnsPath is the pod's network kernel.Namespace, with its loopback up. Empty means the machine's own (hostNetwork): then
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
		if err := p.Validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(r.Ports[:i], p.Overlaps) {
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

// ParseSubnets parses the subnets of a network: "auto" for none, or one IPv4 subnet and optionally, after a comma, one IPv6
// subnet.
func ParseSubnets(text string) ([]netip.Prefix, error) { return subnet.Parse(text) }
