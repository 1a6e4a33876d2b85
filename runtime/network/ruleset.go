package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// family is what differs between the rules of IPv4 and of IPv6. Registers are those of 32 bits, counted from firstReg.
type family struct {
	is4           bool
	proto         byte   // nfproto, and the family of the translation
	addrLen       uint32 // bytes
	source, dest  uint32 // where the addresses lie in the header
	protocolReg   uint32 // behind the address in a key
	portReg       uint32
	translatedReg uint32 // the port in what is found: behind the address
}

// firstReg is NFT_REG32_00.
const firstReg = 8

var families = []family{
	{
		is4: true, proto: unix.NFPROTO_IPV4, addrLen: 4, source: 12, dest: 16,
		protocolReg: firstReg + 1, portReg: firstReg + 2, translatedReg: firstReg + 1,
	},
	{
		proto: unix.NFPROTO_IPV6, addrLen: 16, source: 8, dest: 24,
		protocolReg: firstReg + 4, portReg: firstReg + 5, translatedReg: firstReg + 4,
	},
}

// Bits of ct status and ct state, from the kernel's nf_conntrack_common.h.
const (
	ctDestinationTranslated = 1 << 5
	ctEstablished           = 1 << 1
	ctRelated               = 1 << 2
)

func (n *Network) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: n.opts.Bridge}
}

// portMap is the map of one family: (address . protocol . port) of the machine to (address . port) of a pod. The
// unspecified address stands for all.
func (n *Network) portMap(f family) *nftables.Set {
	name, address := "ports4", nftables.TypeIPAddr
	if !f.is4 {
		name, address = "ports6", nftables.TypeIP6Addr
	}
	return &nftables.Set{
		Table: n.table(), Name: name, IsMap: true, Concatenation: true,
		KeyType:  nftables.MustConcatSetType(address, nftables.TypeInetProto, nftables.TypeInetService),
		DataType: nftables.MustConcatSetType(address, nftables.TypeInetService),
	}
}

// writeRuleset replaces the whole table by what the leases say, in one transaction: no packet meets half of it.
func (n *Network) writeRuleset(ctx context.Context) error {
	return n.nft(ctx, func(c *firewall) error {
		t := n.table()
		c.AddTable(t) // else it could not be deleted
		c.DelTable(t)
		c.AddTable(t)
		r := ruler{c.Conn, t, n.opts.Bridge}
		var maps [2]*nftables.Set
		for i, f := range families {
			maps[i] = n.portMap(f)
			var elements []nftables.SetElement
			for _, l := range n.leases {
				elements = append(elements, l.elements(f)...)
			}
			if err := c.AddSet(maps[i], elements); err != nil {
				return fmt.Errorf("map %s: %w", maps[i].Name, err)
			}
		}
		r.writeChains(maps, n.subnets)
		return c.Flush()
	})
}

// ruler writes rules into one table.
type ruler struct {
	c      *nftables.Conn
	t      *nftables.Table
	bridge string
}

func (r ruler) chain(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	return r.c.AddChain(&nftables.Chain{Name: name, Table: r.t, Type: kind, Hooknum: hook, Priority: priority})
}

func (r ruler) rule(ch *nftables.Chain, parts ...[]expr.Any) {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	r.c.AddRule(&nftables.Rule{Table: r.t, Chain: ch, Exprs: all})
}

func (r ruler) writeChains(maps [2]*nftables.Set, subnets []netip.Prefix) {
	r.guardLoopback(r.chain("guard", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw))
	for _, ch := range []*nftables.Chain{
		r.chain("prerouting", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest),
		r.chain("output", nftables.ChainTypeNAT, nftables.ChainHookOutput, nftables.ChainPriorityNATDest),
	} {
		for i, f := range families {
			r.translatePorts(ch, f, maps[i])
		}
	}
	r.masquerade(r.chain("postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource), subnets)
	r.guardPods(r.chain("forward", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter))
}

// guardLoopback drops what comes from a link to or, from pods, pretends to be of 127.0.0.0/8: with route_localnet on the
// bridge the kernel itself would not.
func (r ruler) guardLoopback(ch *nftables.Chain) {
	v4, loopback := families[0], netip.MustParsePrefix("127.0.0.0/8")
	r.rule(ch, v4.only(), link(expr.MetaKeyIIFNAME, expr.CmpOpNeq, "lo"), v4.address(v4.dest, loopback), verdict(expr.VerdictDrop))
	r.rule(ch, v4.only(), link(expr.MetaKeyIIFNAME, expr.CmpOpEq, r.bridge), v4.address(v4.source, loopback), verdict(expr.VerdictDrop))
}

// translatePorts leads a packet for one of the machine's addresses into the pod that has the port: first on that very
// address, then on all of them.
func (r ruler) translatePorts(ch *nftables.Chain, f family, ports *nftables.Set) {
	local := []expr.Any{
		&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
	specific := &expr.Payload{DestRegister: firstReg, Base: expr.PayloadBaseNetworkHeader, Offset: f.dest, Len: f.addrLen}
	every := &expr.Immediate{Register: firstReg, Data: make([]byte, f.addrLen)}
	for _, address := range []expr.Any{specific, every} {
		r.rule(ch, f.only(), local, []expr.Any{
			address,
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: f.protocolReg},
			&expr.Payload{DestRegister: f.portReg, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Lookup{SourceRegister: firstReg, DestRegister: firstReg, IsDestRegSet: true, SetName: ports.Name, SetID: ports.ID},
			&expr.NAT{
				Type: expr.NATTypeDestNAT, Family: uint32(f.proto),
				RegAddrMin: firstReg, RegProtoMin: f.translatedReg, Specified: true,
			},
		})
	}
}

// masquerade makes answers come back through the machine: for pods that talk to the outside, for the machine's own
// 127.0.0.1, and for pods that talk to a host port of a pod, perhaps their own.
func (r ruler) masquerade(ch *nftables.Chain, subnets []netip.Prefix) {
	masquerade := []expr.Any{&expr.Masq{}}
	in := link(expr.MetaKeyOIFNAME, expr.CmpOpEq, r.bridge)
	v4 := families[0]
	r.rule(ch, v4.only(), v4.address(v4.source, netip.MustParsePrefix("127.0.0.0/8")), in, masquerade)
	for i, s := range subnets {
		f := families[i]
		r.rule(ch, f.only(), f.address(f.source, s), link(expr.MetaKeyOIFNAME, expr.CmpOpNeq, r.bridge), masquerade)
		r.rule(ch, f.only(), f.address(f.source, s), in, conntrack(expr.CtKeySTATUS, ctDestinationTranslated), masquerade)
	}
}

// guardPods drops what comes to pods from other links, unless it is an answer or came through a host port. Ports that are
// not published stay unreachable for neighbours, whatever the machine forwards otherwise.
func (r ruler) guardPods(ch *nftables.Chain) {
	in := link(expr.MetaKeyOIFNAME, expr.CmpOpEq, r.bridge)
	from := link(expr.MetaKeyIIFNAME, expr.CmpOpNeq, r.bridge)
	r.rule(ch, in, from, conntrack(expr.CtKeySTATE, ctEstablished|ctRelated), verdict(expr.VerdictAccept))
	r.rule(ch, in, from, conntrack(expr.CtKeySTATUS, ctDestinationTranslated), verdict(expr.VerdictAccept))
	r.rule(ch, in, from, verdict(expr.VerdictDrop))
}

// only matches packets of the family.
func (f family) only() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.proto}},
	}
}

// address matches packets whose address at an offset of the header is in a subnet.
func (f family) address(offset uint32, s netip.Prefix) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.addrLen},
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: f.addrLen,
			Mask: net.CIDRMask(s.Bits(), s.Addr().BitLen()), Xor: make([]byte, f.addrLen),
		},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: s.Addr().AsSlice()},
	}
}

// link matches the name of the link that a packet came by or leaves by.
func link(key expr.MetaKey, op expr.CmpOp, name string) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: linkName(name)}}
}

// linkName is how the kernel compares the name of a link.
func linkName(name string) []byte {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return padded
}

// conntrack matches packets of connections with one of the bits.
func conntrack(key expr.CtKey, bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: key, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

// elements are those of the lease in the map of one family.
func (l *lease) elements(f family) []nftables.SetElement {
	if l.Leaving {
		return nil
	}
	var all []nftables.SetElement
	for _, ip := range l.IPs {
		if ip.Is4() != f.is4 {
			continue
		}
		for _, p := range l.Ports {
			if p.serves(f.is4) {
				all = append(all, element(f, p, ip))
			}
		}
	}
	return all
}

// element maps a port to the pod with an address. Each part of a key takes a multiple of four bytes.
func element(f family, p Port, ip netip.Addr) nftables.SetElement {
	key := make([]byte, f.addrLen+8)
	if p.HostIP.IsValid() {
		copy(key, p.HostIP.AsSlice())
	}
	key[f.addrLen] = protocols[p.Protocol]
	binary.BigEndian.PutUint16(key[f.addrLen+4:], p.HostPort)
	value := make([]byte, f.addrLen+4)
	copy(value, ip.AsSlice())
	binary.BigEndian.PutUint16(value[f.addrLen:], p.ContainerPort)
	return nftables.SetElement{Key: key, Val: value}
}

// changePorts adds or deletes the elements of a lease. The error is errRulesetLost where the table is not as it should be,
// such as after somebody's "nft flush ruleset".
func (n *Network) changePorts(ctx context.Context, l *lease, change func(*firewall, *nftables.Set, []nftables.SetElement) error) error {
	if len(l.Ports) == 0 {
		return nil
	}
	err := n.nft(ctx, func(c *firewall) error {
		for _, f := range families {
			if elements := l.elements(f); len(elements) > 0 {
				if err := change(c, n.portMap(f), elements); err != nil {
					return fmt.Errorf("map %s: %w", n.portMap(f).Name, err)
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

// errRulesetLost says that the kernel's ruleset is not what the leases say.
var errRulesetLost = errors.New("the ruleset is not ours any more")
