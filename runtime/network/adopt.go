package network

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// adopt makes leases out of what the links of pods and the maps of ports show, for when the file of leases is lost. The
// names of the pods come with the next Setup. What makes no sense is left for Reconcile to remove.
func (n *Network) adopt(ctx context.Context) error {
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
	ports, err := n.publishedPorts(ctx)
	if err != nil {
		return err
	}
	taken := n.takenAddresses()
	for _, link := range links {
		uid, ips, ok := parseAlias(link.Attrs().Alias, n.opts.Bridge)
		sensible := ok && n.leases[uid] == nil && len(ips) <= len(n.subnets)
		for i, ip := range ips {
			sensible = sensible && n.subnets[i].Contains(ip) && !taken(ip)
		}
		if sensible {
			n.leases[uid] = &lease{Pod: uid, IPs: ips, Link: link.Attrs().Name, Ports: ports[ips[0]]}
			taken = n.takenAddresses()
		}
	}
	return nil
}

// bridgeSubnets reads the subnets off the bridge; nil if it has none that can be ours.
func (n *Network) bridgeSubnets() ([]netip.Prefix, error) {
	bridge, err := n.links.LinkByName(n.opts.Bridge)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", n.opts.Bridge, err)
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
	slices.SortFunc(subnets, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) }) // IPv4 first
	if checkSubnets(subnets) != nil {
		return nil, nil
	}
	return subnets, nil
}

// publishedPorts reads the maps of the ruleset, by the addresses of pods of IPv4.
func (n *Network) publishedPorts(ctx context.Context) (map[netip.Addr][]Port, error) {
	if there, err := n.tableExists(ctx); !there {
		return nil, err
	}
	type half struct {
		number uint32 // the pod's in its subnet
		port   Port
	}
	seen := map[half]int{} // 1 for IPv4, 2 for IPv6
	for i, s := range n.subnets {
		elements, err := n.elementsOf(ctx, families[i])
		if err != nil {
			return nil, err
		}
		for _, e := range elements {
			if p, ip, ok := parseElement(families[i], e); ok && s.Contains(ip) {
				if p.HostIP.IsUnspecified() {
					p.HostIP = netip.Addr{}
				}
				seen[half{numberOf(s, ip), p}] |= 1 << i
			}
		}
	}
	ports := map[netip.Addr][]Port{}
	for h, in := range seen {
		if !h.port.HostIP.IsValid() && len(n.subnets) > 1 && in == 1 {
			h.port.HostIP = netip.IPv4Unspecified()
		} else if !h.port.HostIP.IsValid() && in == 2 {
			h.port.HostIP = netip.IPv6Unspecified()
		}
		pod := at(n.subnets[0], h.number)
		ports[pod] = append(ports[pod], h.port)
	}
	return ports, nil
}

func (n *Network) elementsOf(ctx context.Context, f family) (elements []nftables.SetElement, err error) {
	err = n.nft(ctx, func(c *firewall) (err error) {
		elements, err = c.GetSetElements(n.portMap(f))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list map of ports: %w", err)
	}
	return elements, nil
}

// parseElement is the inverse of element.
func parseElement(f family, e nftables.SetElement) (p Port, ip netip.Addr, ok bool) {
	if len(e.Key) < int(f.addrLen)+6 || len(e.Val) < int(f.addrLen)+2 {
		return Port{}, netip.Addr{}, false
	}
	p.HostIP, _ = netip.AddrFromSlice(e.Key[:f.addrLen])
	p.HostPort = binary.BigEndian.Uint16(e.Key[f.addrLen+4:])
	for _, name := range []spec.Protocol{spec.ProtocolTCP, spec.ProtocolUDP, spec.ProtocolSCTP} {
		if protocols[name] == e.Key[f.addrLen] {
			p.Protocol = name
		}
	}
	ip, _ = netip.AddrFromSlice(e.Val[:f.addrLen])
	p.ContainerPort = binary.BigEndian.Uint16(e.Val[f.addrLen:])
	return p, ip, p.check() == nil
}
