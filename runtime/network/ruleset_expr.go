package network

import (
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// family holds the differences between IPv4 and IPv6 rules. Registers are 32-bit registers, counted from firstReg.
type family struct {
	is4           bool
	number        string // in the names of sets
	addressType   nftables.SetDatatype
	proto         byte   // NFPROTO, also the family of the translation
	addrLen       uint32 // in bytes
	source, dest  uint32 // offsets of the addresses in the header
	protocolReg   uint32 // follows the address in a key
	portReg       uint32
	translatedReg uint32 // of the port in the value that is found, following the address
}

// firstReg is NFT_REG32_00.
const firstReg = 8

var families = []family{
	{
		is4: true, number: "4", addressType: nftables.TypeIPAddr, proto: unix.NFPROTO_IPV4, addrLen: 4, source: 12, dest: 16,
		protocolReg: firstReg + 1, portReg: firstReg + 2, translatedReg: firstReg + 1,
	},
	{
		number: "6", addressType: nftables.TypeIP6Addr, proto: unix.NFPROTO_IPV6, addrLen: 16, source: 8, dest: 24,
		protocolReg: firstReg + 4, portReg: firstReg + 5, translatedReg: firstReg + 4,
	},
}

// only matches packets of the family.
func (f family) only() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.proto}},
	}
}

// address matches packets whose address at a header offset is in a subnet.
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

// notFrom matches packets whose source address is not in a subnet.
func (f family) notFrom(s netip.Prefix) []expr.Any {
	match := f.address(f.source, s)
	if compare, is := match[len(match)-1].(*expr.Cmp); is {
		compare.Op = expr.CmpOpNeq
	}
	return match
}

// matchLink matches the name of the input or output link.
func matchLink(key expr.MetaKey, op expr.CmpOp, name string) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: linkName(name)}}
}

// linkName returns the name of a link as the kernel compares it.
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

// frame matches frames by EtherType.
func frame(ethertype uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{byte(ethertype >> 8), byte(ethertype)}},
	}
}

// icmp matches ICMPv6 packets of a type.
func icmp(kind byte) []expr.Any {
	return append(frame(unix.ETH_P_IPV6),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_ICMPV6}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{kind}},
	)
}

// The registers of a lookup key: the link name takes four, the hardware address two.
const hardwareReg, addressReg = firstReg + 4, firstReg + 6

// sender matches frames whose link, hardware address and address are an element of the set. Base and offset give the
// location of both addresses in the frame.
func sender(s *nftables.Set, hardwareIn expr.PayloadBase, hardwareAt uint32, addressIn expr.PayloadBase,
	addressAt, addressLen uint32,
) []expr.Any {
	return senderOf(s, hardwareIn, hardwareAt, &expr.Payload{DestRegister: addressReg, Base: addressIn, Offset: addressAt, Len: addressLen})
}

// ownHardware matches frames with the hardware address of the link's pod, whatever their IP address.
func ownHardware(senders6 *nftables.Set, in expr.PayloadBase, at uint32) []expr.Any {
	return senderOf(senders6, in, at, &expr.Immediate{Register: addressReg, Data: net.IPv6zero})
}

// senderOf is sender with an expression that loads the address.
func senderOf(s *nftables.Set, hardwareIn expr.PayloadBase, hardwareAt uint32, address expr.Any) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: firstReg},
		&expr.Payload{DestRegister: hardwareReg, Base: hardwareIn, Offset: hardwareAt, Len: 6},
		address,
		&expr.Lookup{SourceRegister: firstReg, SetName: s.Name, SetID: s.ID},
	}
}

// unless inverts a match of sender.
func unless(match []expr.Any) []expr.Any {
	if lookup, is := match[len(match)-1].(*expr.Lookup); is {
		lookup.Invert = true
	}
	return match
}

// begins matches frames with these bytes at an offset, or with CmpOpNeq, frames without them.
func begins(op expr.CmpOp, base expr.PayloadBase, offset uint32, bytes []byte) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: base, Offset: offset, Len: uint32(len(bytes))},
		&expr.Cmp{Op: op, Register: 1, Data: bytes},
	}
}

// unlessLocal matches addresses that are not link-local.
func unlessLocal(base expr.PayloadBase, offset uint32) []expr.Any {
	return begins(expr.CmpOpNeq, base, offset, linkLocal)
}

// linkLocal is the prefix fe80::/64 of link-local addresses, which the kernel assigns itself.
var linkLocal = []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0}
