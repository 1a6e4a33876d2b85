package network

import (
	"errors"
	"net/netip"
	"slices"
)

// Request describes the network of a pod.
type Request struct {
	// UID identifies the pod. Its last address is remembered by PodName.
	UID, PodName string
	// Names are further names of the pod for other pods, such as its host name. The pod name is always one.
	Names []string
	// NetnsPath is the pod's network namespace, with its loopback up. Empty means that of the host (hostNetwork): then
	// the ports are only reserved.
	NetnsPath string
	// Ports are the pod's host ports.
	Ports []Port
}

func (r *Request) check() error {
	if r.UID == "" || r.PodName == "" {
		return errors.New("pod UID and name are required")
	}
	for i, p := range r.Ports {
		if err := p.Validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(r.Ports[:i], p.Overlaps) {
			return &ConflictError{Port: p, Holder: r.PodName}
		}
	}
	return nil
}

// Result is the addresses of a pod: one of IPv4, then one of IPv6 if the host has IPv6. A pod in the host network has
// none.
type Result struct{ IPs []netip.Addr }

// Peer is a pod as seen by other pods.
type Peer struct {
	UID, PodName string
	// IPs are the addresses of the pod, IPv4 first. For a pod in the host network these are the host's addresses on the
	// bridge, or none while there is no bridge.
	IPs []netip.Addr
	// Names are the published names of the pod, its pod name first. Pod names of others are never among them. They may be empty.
	Names []string
}
