package network

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/order"
)

// recoverLeases derives leases from the links of pods and the port maps, when the lease file is lost. The next Setup of
// each pod adds its names. Reconcile removes links with an invalid alias.
func (n *Network) recoverLeases(ctx context.Context) error {
	links, err := n.podLinks()
	if err != nil {
		return err
	}
	if len(links) == 0 {
		return nil
	}
	if n.subnets, err = n.bridgeSubnets(); err != nil || n.subnets == nil {
		return err
	}
	ports, err := n.rules.PublishedPorts(ctx, n.subnets)
	if err != nil {
		return err
	}
	taken := n.takenAddresses()
	for _, link := range links {
		uid, ips, ok := parseAlias(link.Attrs().Alias, n.opts.Bridge)
		valid := ok && n.leases[uid] == nil && len(ips) <= len(n.subnets)
		for i, ip := range ips {
			valid = valid && n.subnets[i].Contains(ip) && !taken(ip)
		}
		if valid {
			n.leases[uid] = &attachment{Lease: Lease{Pod: uid, IPs: ips, Link: link.Attrs().Name, Ports: ports[ips[0]]}}
			taken = n.takenAddresses()
		}
	}
	return nil
}

// bridgeSubnets returns the subnets of the bridge, or nil if they are not valid pod subnets.
func (n *Network) bridgeSubnets() ([]netip.Prefix, error) {
	bridge, err := n.links.LinkByName(n.opts.Bridge)
	if isLinkNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get link %s: %w", n.opts.Bridge, err)
	}
	addresses, err := n.links.AddrList(bridge, unix.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", n.opts.Bridge, err)
	}
	var subnets []netip.Prefix
	for _, a := range addresses {
		if p, ok := prefixOf(a.IPNet); ok && !p.Addr().IsLinkLocalUnicast() {
			subnets = append(subnets, p)
		}
	}
	order.Sort(subnets, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) }) // IPv4 first
	if checkSubnets(subnets) != nil {
		return nil, nil
	}
	return subnets, nil
}
