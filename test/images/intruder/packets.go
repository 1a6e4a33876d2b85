package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// packetAttempts are attempts on the network with crafted packets, for which a container has CAP_NET_RAW.
var packetAttempts = map[string]attempt{
	"datagram":  words(5, datagram),
	"spoof-arp": words(2, spoofARP),
	"spoof-ndp": words(3, spoofNDP),
	"spoof-mac": words(2, spoofMAC),
}

// podLink is the name of a pod's link.
const podLink = "eth0"

func rawSocket([]string) (string, error) {
	fd, err := packetSocket()
	if err != nil {
		return "", err
	}
	return "", unix.Close(fd)
}

func packetSocket() (int, error) {
	return unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
}

// send sends a frame through a link.
func send(link *net.Interface, to, from net.HardwareAddr, ethertype uint16, payload []byte) error {
	fd, err := packetSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, frame(to, from, ethertype, payload), 0, &unix.SockaddrLinklayer{Ifindex: link.Index})
}

func frame(to, from net.HardwareAddr, ethertype uint16, payload []byte) []byte {
	b := append(append([]byte{}, to...), from...)
	return append(binary.BigEndian.AppendUint16(b, ethertype), payload...)
}

// neighbour returns the hardware address of a host in the pod network. It connects first, so that the kernel has an entry.
func neighbour(ip netip.Addr) (net.HardwareAddr, error) {
	if _, err := dial([]string{"tcp", netip.AddrPortFrom(ip, 1).String()}); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
		return nil, err
	}
	text, err := os.ReadFile("/proc/net/arp")
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == ip.String() {
			return net.ParseMAC(fields[3])
		}
	}
	return nil, errors.Join(fmt.Errorf("no neighbour entry for %s", ip), err)
}

// peer is a neighbour, and the addresses for packets to it.
type peer struct {
	link      *net.Interface   // of the pod
	hardware  net.HardwareAddr // of the neighbour
	addresses []netip.Addr     // in the packet
}

// newPeer parses addresses and finds a neighbour by its IPv4 address.
func newPeer(by string, addresses ...string) (m peer, err error) {
	m.addresses = make([]netip.Addr, len(addresses))
	for i, text := range addresses {
		if m.addresses[i], err = netip.ParseAddr(text); err != nil {
			return m, err
		}
	}
	ip, err := netip.ParseAddr(by)
	if err != nil {
		return m, err
	}
	if m.hardware, err = neighbour(ip); err != nil {
		return m, err
	}
	m.link, err = net.InterfaceByName(podLink)
	return m, err
}

// send sends a packet to the neighbour from the pod's own hardware address.
func (m *peer) send(ethertype uint16, payload []byte) error {
	return send(m.link, m.hardware, m.link.HardwareAddr, ethertype, payload)
}

// datagram sends a UDP datagram with a forged source address through a neighbour: "datagram FROM TO PORT NEIGHBOUR TEXT".
func datagram(w []string) (string, error) {
	port, err := strconv.ParseUint(w[2], 10, 16)
	if err != nil {
		return "", err
	}
	m, err := newPeer(w[3], w[0], w[1])
	if err != nil {
		return "", err
	}
	return "", m.send(unix.ETH_P_IP, packet(m.addresses[0], m.addresses[1], uint16(port), w[4]))
}

// packet returns an IPv4 packet with a UDP datagram.
func packet(from, to netip.Addr, port uint16, text string) []byte {
	const ipHeader, udpHeader = 20, 8
	p := make([]byte, ipHeader+udpHeader, ipHeader+udpHeader+len(text))
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP // version and length, time to live
	binary.BigEndian.PutUint16(p[2:], uint16(cap(p)))
	copy(p[12:], from.AsSlice())
	copy(p[16:], to.AsSlice())
	binary.BigEndian.PutUint16(p[10:], checksum(p[:ipHeader]))
	binary.BigEndian.PutUint16(p[ipHeader:], 9) // source port
	binary.BigEndian.PutUint16(p[ipHeader+2:], port)
	binary.BigEndian.PutUint16(p[ipHeader+4:], uint16(udpHeader+len(text))) // checksum 0: none
	return append(p, text...)
}

// checksum returns the internet checksum (RFC 1071).
func checksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// spoofARP tells a neighbour that an address is this pod's, which redirects traffic to this pod: "spoof-arp ADDRESS NEIGHBOUR".
func spoofARP(w []string) (string, error) {
	m, err := newPeer(w[1], w[0], w[1])
	if err != nil {
		return "", err
	}
	const reply = 2
	var b bytes.Buffer
	for _, field := range []any{
		uint16(1), uint16(unix.ETH_P_IP), byte(6), byte(4), uint16(reply),
		[]byte(m.link.HardwareAddr), m.addresses[0].AsSlice(), []byte(m.hardware), m.addresses[1].AsSlice(),
	} {
		if err := binary.Write(&b, binary.BigEndian, field); err != nil {
			return "", err
		}
	}
	return "", m.send(unix.ETH_P_ARP, b.Bytes())
}

// spoofNDP is spoofARP for IPv6: "spoof-ndp ADDRESS NEIGHBOUR NEIGHBOUR-IPV4".
func spoofNDP(w []string) (string, error) {
	m, err := newPeer(w[2], w[0], w[1])
	if err != nil {
		return "", err
	}
	own, err := ownAddress(m.link)
	if err != nil {
		return "", err
	}
	const advertisement, solicited, override, targetOption = 136, 0x40, 0x20, 2
	message := []byte{advertisement, 0, 0, 0, solicited | override, 0, 0, 0}
	message = append(append(message, m.addresses[0].AsSlice()...), targetOption, 1)
	message = append(message, m.link.HardwareAddr...)
	return "", m.send(unix.ETH_P_IPV6, packet6(own, m.addresses[1], message))
}

// spoofMAC sends a packet with a source address that is not valid beyond the link, in a frame with a neighbour's hardware address:
// "spoof-mac NEIGHBOUR-IPV4 SOURCE-IPV6". A bridge that accepts it forwards the neighbour's traffic to this pod.
func spoofMAC(w []string) (string, error) {
	m, err := newPeer(w[0], w[1])
	if err != nil {
		return "", err
	}
	const echo = 128
	message := packet6(m.addresses[0], netip.IPv6LinkLocalAllNodes(), []byte{echo, 0, 0, 0, 0, 0, 0, 0})
	unused := net.HardwareAddr{2, 0, 0, 0, 0, 1} // a response would correct the bridge
	return "", send(m.link, unused, m.hardware, unix.ETH_P_IPV6, message)
}

// packet6 returns an IPv6 packet with an ICMPv6 message, and sets its checksum.
func packet6(from, to netip.Addr, message []byte) []byte {
	pseudo := append(from.AsSlice(), to.AsSlice()...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(message)))
	pseudo = append(pseudo, 0, 0, 0, unix.IPPROTO_ICMPV6)
	binary.BigEndian.PutUint16(message[2:], checksum(append(pseudo, message...)))
	p := []byte{0x60, 0, 0, 0, 0, byte(len(message)), unix.IPPROTO_ICMPV6, 255}
	p = append(append(p, from.AsSlice()...), to.AsSlice()...)
	return append(p, message...)
}

// ownAddress returns the global IPv6 address of a link.
func ownAddress(link *net.Interface) (netip.Addr, error) {
	all, err := link.Addrs()
	for _, a := range all {
		p, parseErr := netip.ParsePrefix(a.String())
		if parseErr == nil && p.Addr().Is6() && !p.Addr().IsLinkLocalUnicast() {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, errors.Join(errors.New("no global IPv6 address"), err)
}
