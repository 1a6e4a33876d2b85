package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// A container has CAP_NET_RAW where nobody says otherwise, as with Docker and the kubelet, so it can send frames of its own
// making. What goes from pod to pod passes no rule for packets, only those of the bridge. There, a table of the bridge's name
// lets a pod's link send nothing but what is of the pod's own addresses: its IP packets, and its answers to who asks where an
// address is. So no pod gets what is meant for another, and no pod is answered in another's name.

// senderSet are the senders of one family: (link . hardware address . address).
func (n *Network) senderSet(f family) *nftables.Set {
	name, address := "senders4", nftables.TypeIPAddr
	if !f.is4 {
		name, address = "senders6", nftables.TypeIP6Addr
	}
	return &nftables.Set{
		Table: n.guardTable(), Name: name, Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr, address),
	}
}

func (n *Network) guardTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyBridge, Name: n.opts.Bridge}
}

// senders are the elements of a lease in the set of one family. In that of IPv6 a lease has the unspecified address too, which stands
// for what is no pod's alone: else a frame without an address of the pod could have the hardware address of another, and the bridge
// would send to this link what is meant for that one.
func (l *lease) senders(f family) (all []nftables.SetElement) {
	if l.Leaving || l.Link == "" {
		return nil
	}
	ips := l.IPs
	if !f.is4 {
		ips = append(slices.Clone(ips), netip.IPv6Unspecified())
	}
	for _, ip := range ips {
		if ip.Is4() == f.is4 {
			key := make([]byte, unix.IFNAMSIZ+8, unix.IFNAMSIZ+8+16)
			copy(key, l.Link)
			copy(key[unix.IFNAMSIZ:], hardwareAddr(l.IPs[0]))
			all = append(all, nftables.SetElement{Key: append(key, ip.AsSlice()...)})
		}
	}
	return all
}

// writeGuard replaces the guard by what the leases say. guarded is false on a kernel that has no rules for bridges, which is told.
func (n *Network) writeGuard(ctx context.Context) (guarded bool, err error) {
	err = n.nft(ctx, func(c *firewall) error {
		t := n.guardTable()
		c.AddTable(t) // else it could not be deleted
		c.DelTable(t)
		c.AddTable(t)
		var sets [2]*nftables.Set
		for i, f := range families {
			sets[i] = n.senderSet(f)
			var elements []nftables.SetElement
			for _, l := range n.leases {
				elements = append(elements, l.senders(f)...)
			}
			if err := c.AddSet(sets[i], elements); err != nil {
				return fmt.Errorf("set %s: %w", sets[i].Name, err)
			}
		}
		r := ruler{c.Conn, t, n.opts.Bridge}
		r.guardSenders(r.chain("senders", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityFilter), sets)
		return c.Flush()
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENOENT) {
		n.log.WarnContext(ctx, "pods can pretend to be each other: the kernel has no nftables for bridges", slog.Any("error", err))
		return false, nil
	}
	return err == nil, err
}

// The kinds of ICMPv6 by which somebody tells where an address or the way out is.
const (
	icmpRouterAdvertisement    = 134
	icmpNeighbourAdvertisement = 136
	icmpRedirect               = 137
)

// guardSenders drops what a pod's link sends in another's name. Frames of others' links are none of its business.
func (r ruler) guardSenders(ch *nftables.Chain, sets [2]*nftables.Set) {
	pods := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte(linkPrefix(r.bridge))}, // the beginning of a name
	}
	v4, v6 := families[0], families[1]
	accept, drop := verdict(expr.VerdictAccept), verdict(expr.VerdictDrop)
	const arpHardware, arpAddress = 8, 14 // the sender's, in the payload
	const target = 8                      // of a neighbour advertisement
	link := expr.PayloadBaseLLHeader
	const source = 6 // of a frame
	r.rule(ch, pods, accept)
	r.rule(ch, frame(unix.ETH_P_IP), sender(sets[0], link, source, expr.PayloadBaseNetworkHeader, v4.source, v4.addrLen), accept)
	r.rule(ch, frame(unix.ETH_P_ARP),
		sender(sets[0], link, source, expr.PayloadBaseNetworkHeader, arpAddress, v4.addrLen),
		sender(sets[0], expr.PayloadBaseNetworkHeader, arpHardware, expr.PayloadBaseNetworkHeader, arpAddress, v4.addrLen), accept)
	r.rule(ch, icmp(icmpRouterAdvertisement), drop)
	r.rule(ch, icmp(icmpRedirect), drop)
	r.rule(ch, icmp(icmpNeighbourAdvertisement), unless(sender(sets[1], link, source, expr.PayloadBaseTransportHeader, target, v6.addrLen)),
		unlessLocal(expr.PayloadBaseTransportHeader, target), drop)
	r.rule(ch, frame(unix.ETH_P_IPV6), sender(sets[1], link, source, expr.PayloadBaseNetworkHeader, v6.source, v6.addrLen), accept)
	// Without an address yet, which was accepted above, or with that of the link alone, a pod speaks of itself to its neighbours.
	r.rule(ch, frame(unix.ETH_P_IPV6), begins(expr.CmpOpEq, expr.PayloadBaseNetworkHeader, v6.source, linkLocal), ownHardware(sets[1], link, source), accept)
	r.rule(ch, drop)
}

// linkLocal begins the addresses of a link alone, which the kernel makes itself: fe80::/64.
var linkLocal = []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0}

// frame matches frames by what they carry.
func frame(ethertype uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{byte(ethertype >> 8), byte(ethertype)}},
	}
}

// icmp matches ICMPv6 of a kind.
func icmp(kind byte) []expr.Any {
	return append(frame(unix.ETH_P_IPV6),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_ICMPV6}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{kind}},
	)
}

// The registers of what is looked up: the name of a link takes four, a hardware address two.
const hardwareReg, addressReg = firstReg + 4, firstReg + 6

// sender matches frames whose link, hardware address and address, each where it lies, are in the set together.
func sender(s *nftables.Set, hardwareIn expr.PayloadBase, hardwareAt uint32, addressIn expr.PayloadBase, addressAt, addressLen uint32) []expr.Any {
	return senderOf(s, hardwareIn, hardwareAt, &expr.Payload{DestRegister: addressReg, Base: addressIn, Offset: addressAt, Len: addressLen})
}

// ownHardware matches frames with the hardware address of their link's pod, whatever else they say.
func ownHardware(senders6 *nftables.Set, in expr.PayloadBase, at uint32) []expr.Any {
	return senderOf(senders6, in, at, &expr.Immediate{Register: addressReg, Data: net.IPv6zero})
}

// senderOf is sender with what loads the address.
func senderOf(s *nftables.Set, hardwareIn expr.PayloadBase, hardwareAt uint32, address expr.Any) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: firstReg},
		&expr.Payload{DestRegister: hardwareReg, Base: hardwareIn, Offset: hardwareAt, Len: 6},
		address,
		&expr.Lookup{SourceRegister: firstReg, SetName: s.Name, SetID: s.ID},
	}
}

// unless turns a match of sender into its opposite.
func unless(match []expr.Any) []expr.Any {
	if lookup, is := match[len(match)-1].(*expr.Lookup); is {
		lookup.Invert = true
	}
	return match
}

// begins matches what begins, or with another operator does not, with these bytes.
func begins(op expr.CmpOp, base expr.PayloadBase, offset uint32, bytes []byte) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: base, Offset: offset, Len: uint32(len(bytes))},
		&expr.Cmp{Op: op, Register: 1, Data: bytes},
	}
}

// unlessLocal matches what does not begin as the addresses of a link alone do.
func unlessLocal(base expr.PayloadBase, offset uint32) []expr.Any {
	return begins(expr.CmpOpNeq, base, offset, linkLocal)
}

// vouch lets the link of a lease send what is of its addresses. The turn is held, and the base is there.
func (n *Network) vouch(ctx context.Context, l *lease) error {
	if !n.base.guarded {
		return nil
	}
	err := n.changeSenders(ctx, l, connAdd)
	if errors.Is(err, errRulesetLost) {
		n.base.guarded, err = n.writeGuard(ctx)
	}
	return err
}

// disown ends that.
func (n *Network) disown(ctx context.Context, was *lease) error {
	err := n.changeSenders(ctx, was, connDelete)
	if errors.Is(err, errRulesetLost) {
		if there, err := n.hasTable(ctx, nftables.TableFamilyBridge); !there {
			return err
		}
		_, err = n.writeGuard(ctx)
	}
	return err
}

// changeSenders adds or deletes the elements of a lease. The error is errRulesetLost as with changePorts.
func (n *Network) changeSenders(ctx context.Context, l *lease, change func(*firewall, *nftables.Set, []nftables.SetElement) error) error {
	err := n.nft(ctx, func(c *firewall) error {
		for _, f := range families {
			if elements := l.senders(f); len(elements) > 0 {
				if err := change(c, n.senderSet(f), elements); err != nil {
					return fmt.Errorf("set %s: %w", n.senderSet(f).Name, err)
				}
			}
		}
		return c.Flush()
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY) {
		return errRulesetLost
	}
	return err
}
