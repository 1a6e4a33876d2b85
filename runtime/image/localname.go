package image

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// nameGuard decides which registries are on loopback or link-local addresses according to the DNS. The owner of a name can change its
// answers at any time. Therefore a name is resolved before the first connection to it, once for each pull, and is on such an address only
// if all answers are. From then on all connections to it go to these addresses: it cannot become another host that refers to them. There
// is no connection to a name that could not be resolved: its registry could refer to addresses that the name gets later.
type nameGuard struct {
	lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the system's resolver

	mu    sync.Mutex
	names map[string]*resolvedName
}

// resolvedName is the name of a registry.
type resolvedName struct {
	resolved bool
	kind     addressKind  // empty: the name is not on such addresses, or not resolved
	local    []netip.Addr // of the kind
}

// add adds the name of a registry.
func (n *nameGuard) add(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names == nil {
		n.names = map[string]*resolvedName{}
	}
	if host = strings.ToLower(host); n.names[host] == nil {
		n.names[host] = &resolvedName{}
	}
}

// fixed returns the addresses, with the port, to use for a connection to host:port. It returns none if any address may be used that
// [localGuard.check] allows, and an error if the address is invalid or the name of a registry cannot be resolved.
func (n *nameGuard) fixed(ctx context.Context, address string) (addresses []string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	name := n.names[strings.ToLower(host)]
	if name == nil {
		return nil, nil
	}
	if !name.resolved {
		if err := n.resolve(ctx, host, name); err != nil {
			return nil, err
		}
	}
	for _, ip := range name.local {
		addresses = append(addresses, net.JoinHostPort(ip.String(), port))
	}
	return addresses, nil
}

// resolve decides whether a name is on a local address. It decides nothing if the name cannot be resolved. The caller holds the lock.
func (n *nameGuard) resolve(ctx context.Context, host string, name *resolvedName) error {
	lookup := n.lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found, err := lookup(ctx, host)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	name.resolved = true
	kind := kindOf(found[0])
	for _, ip := range found {
		if kindOf(ip) != kind {
			return nil
		}
	}
	if kind != "" {
		name.kind, name.local = kind, found
	}
	return nil
}

// on reports whether a registry is on addresses of a kind.
func (n *nameGuard) on(kind addressKind) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.names {
		if name.kind == kind {
			return true
		}
	}
	return false
}

// dialAny connects to the first address that accepts.
func dialAny(ctx context.Context, d *net.Dialer, network string, addresses []string) (net.Conn, error) {
	var errs []error
	for _, address := range addresses {
		c, err := d.DialContext(ctx, network, address)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
