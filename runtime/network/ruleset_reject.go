package network

import (
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The kernel applies address translation to the first packet of a connection and repeats it for all others. So packets of
// old connections are translated to the address of a removed pod, where they would be lost and the client would wait for
// minutes. Packets from ::1 would be lost too, since the kernel does not send them to other links. Both are rejected.

// loopback6 is the loopback address of IPv6.
var loopback6 = netip.MustParsePrefix("::1/128")

// podSet is the set of pod addresses of one family.
func (r *ruleset) podSet(f family) *nftables.Set {
	return &nftables.Set{Table: r.table(), Name: "pods" + f.number, KeyType: f.addressType}
}

// addresses returns the elements of an endpoint in the set of one family.
func (e endpoint) addresses(f family) (all []nftables.SetElement) {
	for _, ip := range e.IPs {
		if ip.Is4() == f.is4 {
			all = append(all, nftables.SetElement{Key: ip.AsSlice()})
		}
	}
	return all
}

// rejectRemoved rejects packets that were translated to the address of a removed pod.
func (w tableWriter) rejectRemoved(ch *nftables.Chain, pods [2]*nftables.Set, subnets []netip.Prefix) {
	for i, s := range subnets {
		f := families[i]
		w.reject(ch, f.only(), f.address(f.dest, s), conntrack(expr.CtKeySTATUS, ctDestinationTranslated), []expr.Any{
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.dest, Len: f.addrLen},
			&expr.Lookup{SourceRegister: 1, SetName: pods[i].Name, SetID: pods[i].ID, Invert: true},
		})
	}
}

// rejectLoopback6 rejects new connections from ::1 to host ports on all addresses. Otherwise a process of the host that listens
// on [::1] would accept them.
func (w tableWriter) rejectLoopback6(ch *nftables.Chain, ports *nftables.Set) {
	f := families[1]
	w.reject(ch, f.only(), f.address(f.source, loopback6), conntrack(expr.CtKeySTATE, ctNew), lookUp(f, everyAddress(f), ports))
}

// reject rejects packets that match: TCP by a reset, others by ICMP.
func (w tableWriter) reject(ch *nftables.Chain, match ...[]expr.Any) {
	protocol := func(op expr.CmpOp) []expr.Any {
		return []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: op, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		}
	}
	reset := []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
	unreachable := []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}}
	w.rule(ch, append(slices.Clip(match), protocol(expr.CmpOpEq), reset)...)
	w.rule(ch, append(slices.Clip(match), protocol(expr.CmpOpNeq), unreachable)...)
}
