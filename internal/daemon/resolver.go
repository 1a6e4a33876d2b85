package daemon

import (
	"context"
	"net"
	"net/netip"

	"github.com/podstead/podstead/runtime/oci"
)

// forwardingResolver returns a resolver for a daemon without root, in whose network namespace the name servers of the host that are on
// loopback addresses are not reached.
func forwardingResolver() *net.Resolver {
	return &net.Resolver{
		PreferGo: true, // it calls Dial
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, nameServer(address))
		},
	}
}

// nameServer returns the address in that namespace of a name server of the host.
func nameServer(address string) string {
	server, err := netip.ParseAddrPort(address)
	if err != nil || !server.Addr().IsLoopback() {
		return address
	}
	return net.JoinHostPort(oci.ForwardedDNS, "53")
}
