package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Containers have CAP_NET_RAW by default, as with Docker and the kubelet, so they can send arbitrary frames. Frames
// between pods pass only the rules of family bridge. A table of this family lets a pod's link send only from the pod's
// own addresses: IP packets, ARP replies and neighbour advertisements. So a pod can neither receive the traffic of
// another pod nor reply in its name.

// senderSet is the set of allowed senders of one family: (link . hardware address . address).
func (r *ruleset) senderSet(f family) *nftables.Set {
	return &nftables.Set{
		Table: r.guardTable(), Name: "senders" + f.number, Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr, f.addressType),
	}
}

func (r *ruleset) guardTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyBridge, Name: r.bridge}
}

// senders returns the elements of an endpoint in the set of one family. For IPv6 they include the unspecified address,
// which matches frames without an address of the pod. Otherwise such a frame could carry the hardware address of another
// pod, and the bridge would then forward frames for that pod to this link.
func (e endpoint) senders(f family) (all []nftables.SetElement) {
	if e.Link == "" {
		return nil
	}
	ips := e.IPs
	if !f.is4 {
		ips = append(slices.Clone(ips), netip.IPv6Unspecified())
	}
	for _, ip := range ips {
		if ip.Is4() == f.is4 {
			key := make([]byte, unix.IFNAMSIZ+8, unix.IFNAMSIZ+8+16)
			copy(key, e.Link)
			copy(key[unix.IFNAMSIZ:], hardwareAddrOf(e.IPs[0]))
			all = append(all, nftables.SetElement{Key: append(key, ip.AsSlice()...)})
		}
	}
	return all
}

// WriteGuard replaces the guard by that of the endpoints. guarded is false, with a logged warning, if the kernel does not
// support rules of family bridge.
func (r *ruleset) WriteGuard(ctx context.Context, endpoints []endpoint) (guarded bool, err error) {
	err = r.replace(ctx, r.guardTable(), func(w tableWriter) error {
		var sets [2]*nftables.Set
		for i, f := range families {
			sets[i] = r.senderSet(f)
			var elements []nftables.SetElement
			for _, e := range endpoints {
				elements = append(elements, e.senders(f)...)
			}
			if err := w.c.AddSet(sets[i], elements); err != nil {
				return fmt.Errorf("set %s: %w", sets[i].Name, err)
			}
		}
		w.guardSenders(w.chain("senders", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityFilter), sets)
		return nil
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENOENT) {
		r.log.WarnContext(ctx, "pods can spoof addresses of other pods: kernel does not support nftables for bridges",
			slog.Any("error", err))
		return false, nil
	}
	return err == nil, err
}

// ICMPv6 types that announce an address or a route.
const (
	icmpRouterAdvertisement    = 134
	icmpNeighbourAdvertisement = 136
	icmpRedirect               = 137
)

// guardSenders drops frames of pod links with addresses of others. Frames of other links are accepted.
func (w tableWriter) guardSenders(ch *nftables.Chain, sets [2]*nftables.Set) {
	pods := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte(linkPrefix(w.bridge))}, // compares the prefix of the name
	}
	v4, v6 := families[0], families[1]
	accept, drop := verdict(expr.VerdictAccept), verdict(expr.VerdictDrop)
	const arpHardware, arpAddress = 8, 14 // offsets of the sender in an ARP packet
	const target = 8                      // offset in a neighbour advertisement
	link := expr.PayloadBaseLLHeader
	const source = 6 // offset in an Ethernet header
	w.rule(ch, pods, accept)
	w.rule(ch, frame(unix.ETH_P_IP), sender(sets[0], link, source, expr.PayloadBaseNetworkHeader, v4.source, v4.addrLen), accept)
	w.rule(ch, frame(unix.ETH_P_ARP),
		sender(sets[0], link, source, expr.PayloadBaseNetworkHeader, arpAddress, v4.addrLen),
		sender(sets[0], expr.PayloadBaseNetworkHeader, arpHardware, expr.PayloadBaseNetworkHeader, arpAddress, v4.addrLen), accept)
	w.rule(ch, icmp(icmpRouterAdvertisement), drop)
	w.rule(ch, icmp(icmpRedirect), drop)
	w.rule(ch, icmp(icmpNeighbourAdvertisement), unless(sender(sets[1], link, source, expr.PayloadBaseTransportHeader, target, v6.addrLen)),
		unlessLocal(expr.PayloadBaseTransportHeader, target), drop)
	w.rule(ch, frame(unix.ETH_P_IPV6), sender(sets[1], link, source, expr.PayloadBaseNetworkHeader, v6.source, v6.addrLen), accept)
	// Neighbour discovery uses the unspecified address, which is accepted above, or a link-local address.
	w.rule(ch, frame(unix.ETH_P_IPV6), begins(expr.CmpOpEq, expr.PayloadBaseNetworkHeader, v6.source, linkLocal),
		ownHardware(sets[1], link, source), accept)
	w.rule(ch, drop)
}

// ChangeSenders allows an endpoint's link to send from its addresses, or reverts that. The error is errStale if the guard is not as
// written.
func (r *ruleset) ChangeSenders(ctx context.Context, e endpoint, change changeElements) error {
	err := r.do(ctx, func(c *nftables.Conn) error {
		for _, f := range families {
			if elements := e.senders(f); len(elements) > 0 {
				if err := change(c, r.senderSet(f), elements); err != nil {
					return fmt.Errorf("set %s: %w", r.senderSet(f).Name, err)
				}
			}
		}
		return c.Flush()
	})
	return staleError(err)
}
