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
)

// podLink is the name of a pod's link in its own namespace.
const podLink = "eth0"

// newLinkName returns a random name, so that a link that is being removed is never mistaken for a new one. It has 14 of
// at most 15 characters.
func newLinkName(bridge string) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return linkPrefix(bridge) + fmt.Sprintf("%x", random)
}

// alias returns the alias of a link, from which a lost lease is recovered.
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

// connect creates the link between a pod's namespace and the bridge, or verifies it.
func (n *Network) connect(ctx context.Context, uid, netnsPath string, l *attachment) error {
	pod, err := OpenNamespace(netnsPath)
	if err != nil {
		return err
	}
	defer func() { _ = pod.Close() }() // the file is only read
	var outer netlink.Link
	err = n.step(ctx, "create link", func() error {
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
			n.links.LinkSetHairpin(outer, true), // with br_netfilter, packets of a pod to its own host port stay on the bridge
			n.links.LinkSetUp(outer),
		)
	})
	if err != nil {
		return err
	}
	return n.step(ctx, "configure link in the pod", func() error {
		return pod.Do(func() error { return n.configure(l) })
	})
}

// ensureLink finds the veth pair of a lease or creates it. One that leads to another namespace, such as that of the pod's
// last sandbox, is replaced.
func (n *Network) ensureLink(pod Namespace, l *attachment) (netlink.Link, error) {
	outer, err := n.links.LinkByName(l.Link)
	switch {
	case isLinkNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("get link %s: %w", l.Link, err)
	default:
		leads, err := isPairedWith(outer, pod)
		if leads || err != nil {
			return outer, err
		}
		if err := n.links.LinkDel(outer); err != nil && !isNotFound(err) {
			return nil, fmt.Errorf("remove link %s: %w", l.Link, err)
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = l.Link, n.base.mtu
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerHardwareAddr, veth.PeerNamespace = podLink, hardwareAddrOf(l.IPs[0]), netlink.NsFd(int(pod.Fd()))
	if err := n.links.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("add link %s: %w", l.Link, err)
	}
	return veth, nil
}

// isPairedWith reports whether the other end of a link is the pod's.
func isPairedWith(outer netlink.Link, pod Namespace) (bool, error) {
	leads := false
	err := pod.Do(func() error {
		h, err := Namespace{}.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		inner, err := h.LinkByName(podLink)
		if isLinkNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get link %s: %w", podLink, err)
		}
		leads = inner.Attrs().ParentIndex == outer.Attrs().Index && outer.Attrs().ParentIndex == inner.Attrs().Index
		return nil
	})
	return leads, err
}

// configure sets the addresses and routes of the pod's link. The calling thread is in the pod's namespace.
func (n *Network) configure(l *attachment) error {
	h, err := Namespace{}.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	if len(l.IPs) > 1 {
		// Pods must not act as routers (CVE-2020-10749). With hairpin mode, a link receives its own duplicate address
		// detection and would reject its address.
		for _, s := range [][2]string{{"disable_ipv6", "0"}, {"accept_ra", "0"}, {"accept_dad", "0"}} {
			if err := setSysctl("ipv6/conf/"+podLink+"/"+s[0], s[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	inner, err := h.LinkByName(podLink)
	if err != nil {
		return fmt.Errorf("get link %s: %w", podLink, err)
	}
	for i, ip := range l.IPs {
		a := &netlink.Addr{IPNet: ipNet(ip, n.subnets[i].Bits()), Flags: flagsFor(ip)}
		if err := h.AddrAdd(inner, a); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add address %s: %w", ip, err)
		}
	}
	if err := h.LinkSetUp(inner); err != nil {
		return fmt.Errorf("set link %s up: %w", podLink, err)
	}
	for i := range l.IPs {
		gateway := addressAt(n.subnets[i], gatewayNumber)
		route := &netlink.Route{LinkIndex: inner.Attrs().Index, Gw: gateway.AsSlice()}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("add route via %s: %w", gateway, err)
		}
	}
	return nil
}

// deleteUDPFlows deletes tracked UDP flows to the host ports. Otherwise the kernel would send further packets of these
// flows to their old destination instead of the pod.
func (n *Network) deleteUDPFlows(ports []Port) error {
	for _, kind := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		var filters []netlink.CustomConntrackFilter
		for _, p := range ports {
			if protocolNumbers[p.Protocol] != unix.IPPROTO_UDP || !p.Serves(kind == unix.AF_INET) {
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
				return fmt.Errorf("select flows to %s: %w", p, err)
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
