package ruleset

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Bits of ct status and ct state, from the kernel's nf_conntrack_common.h.
const (
	ctDestinationTranslated = 1 << 5
	ctEstablished           = 1 << 1
	ctRelated               = 1 << 2
)

func (r *Ruleset) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: r.bridge}
}

// writeRuleset replaces the whole table by what the leases say, in one transaction: no packet meets half of it.
func (r *Ruleset) Write(ctx context.Context, endpoints []Endpoint, subnets []netip.Prefix) error {
	return r.do(ctx, func(c *nftables.Conn) error {
		t := r.table()
		c.AddTable(t) // else it could not be deleted
		c.DelTable(t)
		c.AddTable(t)
		w := tableWriter{c, t, r.bridge}
		var maps [2]*nftables.Set
		for i, f := range families {
			maps[i] = r.portMap(f)
			var elements []nftables.SetElement
			for _, e := range endpoints {
				elements = append(elements, e.elements(f)...)
			}
			if err := c.AddSet(maps[i], elements); err != nil {
				return fmt.Errorf("map %s: %w", maps[i].Name, err)
			}
		}
		w.writeChains(maps, subnets)
		return c.Flush()
	})
}

// tableWriter writes rules into one table.
type tableWriter struct {
	c      *nftables.Conn
	t      *nftables.Table
	bridge string
}

func (w tableWriter) chain(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	return w.c.AddChain(&nftables.Chain{Name: name, Table: w.t, Type: kind, Hooknum: hook, Priority: priority})
}

func (w tableWriter) rule(ch *nftables.Chain, parts ...[]expr.Any) {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	w.c.AddRule(&nftables.Rule{Table: w.t, Chain: ch, Exprs: all})
}

func (w tableWriter) writeChains(maps [2]*nftables.Set, subnets []netip.Prefix) {
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
	w.guardPods(w.chain("forward", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter))
}

// guardLoopback drops what comes from a link to or, from pods, pretends to be of 127.0.0.0/8: with route_localnet on the
// bridge the kernel itself would not.
func (w tableWriter) guardLoopback(ch *nftables.Chain) {
	v4, loopback := families[0], netip.MustParsePrefix("127.0.0.0/8")
	w.rule(ch, v4.only(), link(expr.MetaKeyIIFNAME, expr.CmpOpNeq, "lo"), v4.address(v4.dest, loopback), verdict(expr.VerdictDrop))
	w.rule(ch, v4.only(), link(expr.MetaKeyIIFNAME, expr.CmpOpEq, w.bridge), v4.address(v4.source, loopback), verdict(expr.VerdictDrop))
}

// translatePorts leads a packet for one of the machine's addresses into the pod that has the port: first on that very
// address, then on all of them.
func (w tableWriter) translatePorts(ch *nftables.Chain, f family, ports *nftables.Set) {
	local := []expr.Any{
		&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
	specific := &expr.Payload{DestRegister: firstReg, Base: expr.PayloadBaseNetworkHeader, Offset: f.dest, Len: f.addrLen}
	every := &expr.Immediate{Register: firstReg, Data: make([]byte, f.addrLen)}
	for _, address := range []expr.Any{specific, every} {
		w.rule(ch, f.only(), local, []expr.Any{
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
func (w tableWriter) masquerade(ch *nftables.Chain, subnets []netip.Prefix) {
	masquerade := []expr.Any{&expr.Masq{}}
	in := link(expr.MetaKeyOIFNAME, expr.CmpOpEq, w.bridge)
	v4 := families[0]
	w.rule(ch, v4.only(), v4.address(v4.source, netip.MustParsePrefix("127.0.0.0/8")), in, masquerade)
	for i, s := range subnets {
		f := families[i]
		w.rule(ch, f.only(), f.address(f.source, s), link(expr.MetaKeyOIFNAME, expr.CmpOpNeq, w.bridge), masquerade)
		w.rule(ch, f.only(), f.address(f.source, s), in, conntrack(expr.CtKeySTATUS, ctDestinationTranslated), masquerade)
	}
}

// guardPods drops what comes to pods from other links, unless it is an answer or came through a host port. Ports that are
// not published stay unreachable for neighbours, whatever the machine forwards otherwise.
func (w tableWriter) guardPods(ch *nftables.Chain) {
	in := link(expr.MetaKeyOIFNAME, expr.CmpOpEq, w.bridge)
	from := link(expr.MetaKeyIIFNAME, expr.CmpOpNeq, w.bridge)
	w.rule(ch, in, from, conntrack(expr.CtKeySTATE, ctEstablished|ctRelated), verdict(expr.VerdictAccept))
	w.rule(ch, in, from, conntrack(expr.CtKeySTATUS, ctDestinationTranslated), verdict(expr.VerdictAccept))
	w.rule(ch, in, from, verdict(expr.VerdictDrop))
}
