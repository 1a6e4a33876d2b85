package network

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Bits of ct status and ct state, from nf_conntrack_common.h of the kernel.
const (
	ctDestinationTranslated = 1 << 5
	ctEstablished           = 1 << 1
	ctRelated               = 1 << 2
	ctNew                   = 1 << 3
)

func (r *ruleset) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: r.bridge}
}

// Write replaces the table by the rules for these endpoints and subnets, in one transaction.
func (r *ruleset) Write(ctx context.Context, endpoints []endpoint, subnets []netip.Prefix) error {
	return r.replace(ctx, r.table(), func(w tableWriter) error {
		var maps, pods [2]*nftables.Set
		for i, f := range families {
			maps[i], pods[i] = r.portMap(f), r.podSet(f)
			var elements, addresses []nftables.SetElement
			for _, e := range endpoints {
				elements = append(elements, e.elements(f)...)
				addresses = append(addresses, e.addresses(f)...)
			}
			if err := w.c.AddSet(maps[i], elements); err != nil {
				return fmt.Errorf("map %s: %w", maps[i].Name, err)
			}
			if err := w.c.AddSet(pods[i], addresses); err != nil {
				return fmt.Errorf("set %s: %w", pods[i].Name, err)
			}
		}
		w.writeChains(maps, pods, subnets)
		return nil
	})
}

// replace replaces a table by what write adds to it, in one transaction.
func (r *ruleset) replace(ctx context.Context, t *nftables.Table, write func(w tableWriter) error) error {
	return r.do(ctx, func(c *nftables.Conn) error {
		c.AddTable(t) // so that it exists and can be deleted
		c.DelTable(t)
		c.AddTable(t)
		if err := write(tableWriter{c, t, r.bridge}); err != nil {
			return err
		}
		return c.Flush()
	})
}

// tableWriter adds chains and rules to one table.
type tableWriter struct {
	c      *nftables.Conn
	t      *nftables.Table
	bridge string
}

func (w tableWriter) chain(name string, kind nftables.ChainType, hook *nftables.ChainHook,
	priority *nftables.ChainPriority,
) *nftables.Chain {
	return w.c.AddChain(&nftables.Chain{Name: name, Table: w.t, Type: kind, Hooknum: hook, Priority: priority})
}

func (w tableWriter) rule(ch *nftables.Chain, parts ...[]expr.Any) {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	w.c.AddRule(&nftables.Rule{Table: w.t, Chain: ch, Exprs: all})
}

func (w tableWriter) writeChains(maps, pods [2]*nftables.Set, subnets []netip.Prefix) {
	w.guardLoopback(w.chain("guard", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw))
	for _, ch := range []*nftables.Chain{
		w.chain("prerouting", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest),
		w.chain("output", nftables.ChainTypeNAT, nftables.ChainHookOutput, nftables.ChainPriorityNATDest),
	} {
		for i, f := range families {
			w.translatePorts(ch, f, maps[i])
		}
	}
	w.masquerade(w.chain("postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource), subnets)
	w.rejectLoopback6(w.chain("input", nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter), maps[1])
	w.rejectRemoved(w.chain("local", nftables.ChainTypeFilter, nftables.ChainHookOutput, nftables.ChainPriorityFilter), pods, subnets)
	forward := w.chain("forward", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter)
	w.rejectRemoved(forward, pods, subnets)
	w.guardPods(forward)
}

// guardLoopback drops packets to 127.0.0.0/8 from other links, and packets of pods from 127.0.0.0/8. The kernel does not
// drop them itself, since route_localnet is set on the bridge.
func (w tableWriter) guardLoopback(ch *nftables.Chain) {
	v4, loopback := families[0], netip.MustParsePrefix("127.0.0.0/8")
	w.rule(ch, v4.only(), matchLink(expr.MetaKeyIIFNAME, expr.CmpOpNeq, "lo"), v4.address(v4.dest, loopback), verdict(expr.VerdictDrop))
	w.rule(ch, v4.only(), matchLink(expr.MetaKeyIIFNAME, expr.CmpOpEq, w.bridge), v4.address(v4.source, loopback),
		verdict(expr.VerdictDrop))
}

// translatePorts translates packets to the host's addresses: first by the port on this address, then by the port on all
// addresses.
func (w tableWriter) translatePorts(ch *nftables.Chain, f family, ports *nftables.Set) {
	match := f.only()
	if !f.is4 {
		match = append(match, f.notFrom(loopback6)...)
	}
	match = append(match,
		&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	)
	specific := &expr.Payload{DestRegister: firstReg, Base: expr.PayloadBaseNetworkHeader, Offset: f.dest, Len: f.addrLen}
	for _, address := range []expr.Any{specific, everyAddress(f)} {
		w.rule(ch, match, lookUp(f, address, ports), []expr.Any{&expr.NAT{
			Type: expr.NATTypeDestNAT, Family: uint32(f.proto),
			RegAddrMin: firstReg, RegProtoMin: f.translatedReg, Specified: true,
		}})
	}
}

// everyAddress loads the address that stands for all addresses in a port map.
func everyAddress(f family) expr.Any {
	return &expr.Immediate{Register: firstReg, Data: make([]byte, f.addrLen)}
}

// lookUp matches packets whose protocol and port are in a port map with the address that an expression loads. The pod's
// address and port are then in the registers.
func lookUp(f family, address expr.Any, ports *nftables.Set) []expr.Any {
	return []expr.Any{
		address,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: f.protocolReg},
		&expr.Payload{DestRegister: f.portReg, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: firstReg, DestRegister: firstReg, IsDestRegSet: true, SetName: ports.Name, SetID: ports.ID},
	}
}

// masquerade replaces the source address of packets whose replies would not return through the host otherwise: from pods
// to the outside, from 127.0.0.1 to pods, and from pods to a host port of a pod, possibly their own.
func (w tableWriter) masquerade(ch *nftables.Chain, subnets []netip.Prefix) {
	masquerade := []expr.Any{&expr.Masq{}}
	in := matchLink(expr.MetaKeyOIFNAME, expr.CmpOpEq, w.bridge)
	v4 := families[0]
	w.rule(ch, v4.only(), v4.address(v4.source, netip.MustParsePrefix("127.0.0.0/8")), in, masquerade)
	for i, s := range subnets {
		f := families[i]
		w.rule(ch, f.only(), f.address(f.source, s), matchLink(expr.MetaKeyOIFNAME, expr.CmpOpNeq, w.bridge), masquerade)
		w.rule(ch, f.only(), f.address(f.source, s), in, conntrack(expr.CtKeySTATUS, ctDestinationTranslated), masquerade)
	}
}

// guardPods drops packets from other links to pods unless they belong to an established connection or to a host port.
// Other ports of pods stay unreachable for neighbours of the host, even if the host forwards packets.
func (w tableWriter) guardPods(ch *nftables.Chain) {
	in := matchLink(expr.MetaKeyOIFNAME, expr.CmpOpEq, w.bridge)
	from := matchLink(expr.MetaKeyIIFNAME, expr.CmpOpNeq, w.bridge)
	w.rule(ch, in, from, conntrack(expr.CtKeySTATE, ctEstablished|ctRelated), verdict(expr.VerdictAccept))
	w.rule(ch, in, from, conntrack(expr.CtKeySTATUS, ctDestinationTranslated), verdict(expr.VerdictAccept))
	w.rule(ch, in, from, verdict(expr.VerdictDrop))
}
