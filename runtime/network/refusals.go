package network

import (
	"context"
	"log/slog"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// refusalsTable is a table of its own: the daemon connects to registries before there is a pod, and so before the other tables.
func (r *ruleset) refusalsTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: r.bridge + "-refusals"}
}

// WriteRefusals replaces the rule that completes refusals.
func (r *ruleset) WriteRefusals(ctx context.Context) error {
	return r.replace(ctx, r.refusalsTable(), func(w tableWriter) error {
		w.completeRefusals(w.chain("prerouting", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw))
		return nil
	})
}

// completeRefusals has refused connections of this network namespace fail at once. Without support of the kernel they fail after a timeout,
// with a logged warning. The caller holds lock.
func (n *Network) completeRefusals(ctx context.Context) {
	if n.opts.Forwarder == nil { // it is the namespace of the host, without pasta
		return
	}
	if err := n.step(ctx, "complete refusals", func() error { return n.rules.WriteRefusals(ctx) }); err != nil {
		n.log.WarnContext(ctx, "connections to closed ports of other hosts can take minutes to fail", slog.Any("error", err))
	}
}

// completeRefusals sets the flag ACK of segments with RST that come from pasta. Before 2024 it refuses connections without the flag, though
// with the number, and TCP ignores such a segment (RFC 9293, 3.10.7.3): a program that connects to a closed port would wait for minutes.
func (w tableWriter) completeRefusals(ch *nftables.Chain) {
	const flagsAt, checksumAt, rst, ack = 12, 16, 4, 16 // of the TCP header: 4 bits of the length, 4 reserved ones, and 8 flags
	load := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: flagsAt, Len: 2}
	w.rule(ch,
		matchLink(expr.MetaKeyIIFNAME, expr.CmpOpNeq, w.bridge), matchLink(expr.MetaKeyIIFNAME, expr.CmpOpNeq, "lo"), []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
			load,
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2, Mask: []byte{0, rst | ack}, Xor: []byte{0, 0}},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0, rst}},
			load,
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2, Mask: []byte{0xff, 0xff &^ ack}, Xor: []byte{0, ack}},
			&expr.Payload{
				OperationType: expr.PayloadWrite, SourceRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: flagsAt, Len: 2,
				CsumType: expr.CsumTypeInet, CsumOffset: checksumAt,
			},
		})
}
