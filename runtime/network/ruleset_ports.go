package network

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables"

	"github.com/podstead/podstead/spec"
)

// elements returns the elements of an endpoint in the port map of one family.
func (e endpoint) elements(f family) []nftables.SetElement {
	var all []nftables.SetElement
	for _, ip := range e.IPs {
		if ip.Is4() != f.is4 {
			continue
		}
		for _, p := range e.Ports {
			if p.Serves(f.is4) {
				all = append(all, element(f, p, ip))
			}
		}
	}
	return all
}

// element maps a host port to a pod address. Each part of a key is padded to a multiple of four bytes.
func element(f family, p Port, ip netip.Addr) nftables.SetElement {
	key := make([]byte, f.addrLen+8)
	if p.HostIP.IsValid() {
		copy(key, p.HostIP.AsSlice())
	}
	key[f.addrLen] = protocolNumbers[p.Protocol]
	binary.BigEndian.PutUint16(key[f.addrLen+4:], p.HostPort)
	value := make([]byte, f.addrLen+4)
	copy(value, ip.AsSlice())
	binary.BigEndian.PutUint16(value[f.addrLen:], p.ContainerPort)
	return nftables.SetElement{Key: key, Val: value}
}

// portMap is the map of one family: (address . protocol . port) of the host to (address . port) of a pod. The unspecified
// address means all addresses.
func (r *ruleset) portMap(f family) *nftables.Set {
	return &nftables.Set{
		Table: r.table(), Name: "ports" + f.number, IsMap: true, Concatenation: true,
		KeyType:  nftables.MustConcatSetType(f.addressType, nftables.TypeInetProto, nftables.TypeInetService),
		DataType: nftables.MustConcatSetType(f.addressType, nftables.TypeInetService),
	}
}

// PublishedPorts reads the host ports from the port maps, by the IPv4 address of the pod.
func (r *ruleset) PublishedPorts(ctx context.Context, subnets []netip.Prefix) (map[netip.Addr][]Port, error) {
	if found, err := r.Exists(ctx); !found {
		return nil, err
	}
	type half struct {
		number uint32 // the number of the pod's address in its subnet
		port   Port
	}
	seen := map[half]int{} // bit 0 for IPv4, bit 1 for IPv6
	for i, s := range subnets {
		elements, err := r.elementsOf(ctx, families[i])
		if err != nil {
			return nil, err
		}
		for _, e := range elements {
			if p, ip, ok := parseElement(families[i], e); ok && s.Contains(ip) {
				if p.HostIP.IsUnspecified() {
					p.HostIP = netip.Addr{}
				}
				seen[half{addressNumber(s, ip), p}] |= 1 << i
			}
		}
	}
	ports := map[netip.Addr][]Port{}
	for h, in := range seen {
		if !h.port.HostIP.IsValid() && len(subnets) > 1 && in == 1 {
			h.port.HostIP = netip.IPv4Unspecified()
		} else if !h.port.HostIP.IsValid() && in == 2 {
			h.port.HostIP = netip.IPv6Unspecified()
		}
		pod := addressAt(subnets[0], h.number)
		ports[pod] = append(ports[pod], h.port)
	}
	return ports, nil
}

func (r *ruleset) elementsOf(ctx context.Context, f family) (elements []nftables.SetElement, err error) {
	err = r.do(ctx, func(c *nftables.Conn) (err error) {
		elements, err = c.GetSetElements(r.portMap(f))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list port map: %w", err)
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
		if protocolNumbers[name] == e.Key[f.addrLen] {
			p.Protocol = name
		}
	}
	ip, _ = netip.AddrFromSlice(e.Val[:f.addrLen])
	p.ContainerPort = binary.BigEndian.Uint16(e.Val[f.addrLen:])
	return p, ip, p.Validate() == nil
}

// ChangePod translates an endpoint's host ports to its addresses, or reverts that. Afterwards, packets of open connections to its host
// ports are rejected. The error is errStale if the table is not as written.
func (r *ruleset) ChangePod(ctx context.Context, e endpoint, change changeElements) error {
	err := r.do(ctx, func(c *nftables.Conn) error {
		for _, f := range families {
			if addresses := e.addresses(f); len(addresses) > 0 {
				if err := change(c, r.podSet(f), addresses); err != nil {
					return fmt.Errorf("set %s: %w", r.podSet(f).Name, err)
				}
			}
			if elements := e.elements(f); len(elements) > 0 {
				if err := change(c, r.portMap(f), elements); err != nil {
					return fmt.Errorf("map %s: %w", r.portMap(f).Name, err)
				}
			}
		}
		return c.Flush()
	})
	return staleError(err)
}
