package network

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/network/hostport"
	"github.com/podstead/podstead/runtime/network/kernel"
	"github.com/podstead/podstead/runtime/network/ruleset"
	"github.com/podstead/podstead/runtime/network/subnet"
)

// podLink is the name of a pod's link in its own namespace.
const podLink = "eth0"

// newLinkName is a name that no link had: one that is being removed cannot be taken for a new one. It has 14 of the 15
// characters that the kernel allows.
func newLinkName(bridge string) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return ruleset.LinkPrefix(bridge) + fmt.Sprintf("%x", random)
}

// alias is what a link says of itself, so that leases can be read off the links when their file is lost.
func alias(bridge, uid string, ips []netip.Addr) string {
	words := []string{bridge, uid}
	for _, ip := range ips {
		words = append(words, ip.String())
	}
	return strings.Join(words, " ")
}

// parseAlias is the inverse of alias.
func parseAlias(text, bridge string) (uid string, ips []netip.Addr, ok bool) {
	words := strings.Fields(text)
	if len(words) < 3 || words[0] != bridge {
		return "", nil, false
	}
	for _, w := range words[2:] {
		ip, err := netip.ParseAddr(w)
		if err != nil {
			return "", nil, false
		}
		ips = append(ips, ip)
	}
	return words[1], ips, true
}

// connect links a pod's namespace to the bridge, or finds it linked.
func (n *Network) connect(ctx context.Context, uid, netnsPath string, l *attachment) error {
	pod, err := kernel.Open(netnsPath)
	if err != nil {
		return err
	}
	defer func() { _ = pod.Close() }() // it was only read
	var outer netlink.Link
	err = n.step(ctx, "make link", func() error {
		outer, err = n.ensureLink(pod, l)
		return err
	})
	if err != nil {
		return err
	}
	err = n.step(ctx, "set up link", func() error {
		return errors.Join(
			n.links.LinkSetAlias(outer, alias(n.opts.Bridge, uid, l.IPs)),
			n.links.LinkSetMasterByIndex(outer, n.base.bridge),
			n.links.LinkSetHairpin(outer, true), // with br_netfilter a pod's packets to its own host port stay in the bridge
			n.links.LinkSetUp(outer),
		)
	})
	if err != nil {
		return err
	}
	return n.step(ctx, "set up link in the pod", func() error {
		return pod.Do(func() error { return n.configure(l) })
	})
}

// ensureLink finds the veth pair of a lease or makes it. One that leads to another kernel.Namespace, such as to the pod's last
// sandbox, is replaced.
func (n *Network) ensureLink(pod kernel.Namespace, l *attachment) (netlink.Link, error) {
	outer, err := n.links.LinkByName(l.Link)
	switch {
	case kernel.IsLinkNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("look for %s: %w", l.Link, err)
	default:
		leads, err := isPairedWith(outer, pod)
		if leads || err != nil {
			return outer, err
		}
		if err := n.links.LinkDel(outer); err != nil && !kernel.IsNotFound(err) {
			return nil, fmt.Errorf("remove %s: %w", l.Link, err)
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = l.Link, n.base.mtu
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerHardwareAddr, veth.PeerNamespace = podLink, subnet.HardwareAddr(l.IPs[0]), netlink.NsFd(int(pod.Fd()))
	if err := n.links.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("add %s: %w", l.Link, err)
	}
	return veth, nil
}

// isPairedWith reports whether the other end of a link is the pod's.
func isPairedWith(outer netlink.Link, pod kernel.Namespace) (bool, error) {
	leads := false
	err := pod.Do(func() error {
		h, err := kernel.Namespace{}.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		inner, err := h.LinkByName(podLink)
		if kernel.IsLinkNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for %s: %w", podLink, err)
		}
		leads = inner.Attrs().ParentIndex == outer.Attrs().Index && outer.Attrs().ParentIndex == inner.Attrs().Index
		return nil
	})
	return leads, err
}

// configure gives the pod's link its addresses and routes. The calling thread is in the pod's namespace.
func (n *Network) configure(l *attachment) error {
	h, err := kernel.Namespace{}.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	if len(l.IPs) > 1 {
		// Another pod is no router (CVE-2020-10749), and a link that hears its own questions would refuse its address.
		for _, s := range [][2]string{{"disable_ipv6", "0"}, {"accept_ra", "0"}, {"accept_dad", "0"}} {
			if err := kernel.SetSysctl("ipv6/conf/"+podLink+"/"+s[0], s[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	inner, err := h.LinkByName(podLink)
	if err != nil {
		return fmt.Errorf("look for %s: %w", podLink, err)
	}
	for i, ip := range l.IPs {
		a := &netlink.Addr{IPNet: subnet.IPNet(ip, n.subnets[i].Bits()), Flags: flagsFor(ip)}
		if err := h.AddrAdd(inner, a); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add address %s: %w", ip, err)
		}
	}
	if err := h.LinkSetUp(inner); err != nil {
		return fmt.Errorf("set %s up: %w", podLink, err)
	}
	for i := range l.IPs {
		gateway := subnet.At(n.subnets[i], subnet.GatewayNumber)
		route := &netlink.Route{LinkIndex: inner.Attrs().Index, Gw: gateway.AsSlice()}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("add route by %s: %w", gateway, err)
		}
	}
	return nil
}

// deleteUDPFlows makes the kernel forget what it knows of UDP senders to the host ports: it would go on to send their packets
// where it sent the first of them, which was not to this pod.
func (n *Network) deleteUDPFlows(ports []Port) error {
	for _, kind := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		var filters []netlink.CustomConntrackFilter
		for _, p := range ports {
			if hostport.ProtocolNumber(p.Protocol) != unix.IPPROTO_UDP || !p.Serves(kind == unix.AF_INET) {
				continue
			}
			f := &netlink.ConntrackFilter{}
			err := f.AddProtocol(unix.IPPROTO_UDP)
			if err == nil {
				err = f.AddPort(netlink.ConntrackOrigDstPort, p.HostPort)
			}
			if err == nil && p.HostIP.IsValid() && !p.HostIP.IsUnspecified() {
				err = f.AddIP(netlink.ConntrackOrigDstIP, p.HostIP.AsSlice())
			}
			if err != nil {
				return fmt.Errorf("choose flows to %s: %w", p, err)
			}
			filters = append(filters, f)
		}
		if err := n.deleteFlows(kind, filters); err != nil {
			return fmt.Errorf("delete UDP flows: %w", err)
		}
	}
	return nil
}

func (n *Network) deleteFlows(kind netlink.InetFamily, filters []netlink.CustomConntrackFilter) error {
	if len(filters) == 0 {
		return nil
	}
	h, err := n.namespace.Conntrack()
	if err != nil {
		return err
	}
	defer h.Close()
	_, err = h.ConntrackDeleteFilters(netlink.ConntrackTable, kind, filters...)
	return err
}
