package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// base is what all pods share, as this process has created or verified it.
type base struct {
	bridge  int // link index
	mtu     int
	guarded bool // pods cannot spoof addresses
}

// ensureBase creates or verifies what all pods share: subnets, sysctls, bridge and rules. Later calls only check what
// other programs are known to delete, and choose the subnets again while no pod uses them. The caller holds lock.
func (n *Network) ensureBase(ctx context.Context) error {
	exists, err := n.rules.Exists(ctx)
	if err != nil {
		return err
	}
	if !exists || n.base == nil || !n.inUse() {
		n.base = nil
		if err := n.chooseSubnets(ctx); err != nil {
			return err
		}
		if err := n.step(ctx, "set sysctls", func() error { return n.namespace.Do(n.setHostSysctls) }); err != nil {
			return err
		}
		b := &base{}
		if err := n.step(ctx, "create bridge", func() error { return n.ensureBridge(b) }); err != nil {
			return err
		}
		if err := n.step(ctx, "write rules", func() error { return n.rules.Write(ctx, n.endpoints(), n.subnets) }); err != nil {
			return err
		}
		err := n.step(ctx, "write guard", func() (err error) {
			b.guarded, err = n.rules.WriteGuard(ctx, n.endpoints())
			return err
		})
		if err != nil {
			return err
		}
		if n.opts.Forwarder != nil {
			n.keepSources(ctx)
		}
		n.base = b
	}
	return n.step(ctx, "accept packets in FORWARD", func() error { return n.rules.AcceptForwarded(ctx) })
}

// inUse reports whether a pod has an address.
func (n *Network) inUse() bool {
	for _, l := range n.leases {
		if l.Link != "" {
			return true
		}
	}
	return false
}

// chooseSubnets decides which subnets are used. In order of preference: those of running pods, those that are configured,
// those used before unless they now overlap with others, new ones.
func (n *Network) chooseSubnets(ctx context.Context) error {
	if n.inUse() {
		if len(n.opts.Subnets) > 0 && !slices.Equal(n.opts.Subnets, n.subnets) {
			n.log.WarnContext(ctx,
				"configured subnets of the pod network differ from those in use. They change when no pod uses the old ones",
				slog.Any("old", n.subnets), slog.Any("new", n.opts.Subnets))
		}
		return nil
	}
	subnets := n.opts.Subnets
	if len(subnets) == 0 {
		var err error
		if subnets, err = n.automaticSubnets(ctx); err != nil {
			return err
		}
	}
	if slices.Equal(subnets, n.subnets) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subnets = subnets
	n.notify()
	return nil
}

func (n *Network) automaticSubnets(ctx context.Context) ([]netip.Prefix, error) {
	used, err := usedPrefixes(n.links, n.opts.Bridge)
	if err != nil {
		return nil, err
	}
	ipv6 := false
	if err := n.namespace.Do(func() error { ipv6 = hasIPv6(); return nil }); err != nil {
		return nil, err
	}
	subnets := n.state.Subnets // written only with lock held
	if slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return overlapsAny(s, used) }) {
		n.log.WarnContext(ctx, "subnets of the pod network overlap with those of the host, choosing others", slog.Any("old", subnets))
		subnets = nil
	}
	if len(subnets) == 0 || ipv6 && len(subnets) == 1 {
		chosen, err := chooseSubnets(used, ipv6)
		if err != nil {
			return nil, err
		}
		if len(subnets) > 0 {
			chosen[0] = subnets[0]
		}
		n.mu.Lock()
		n.state.Subnets = chosen
		n.mu.Unlock()
		n.saveStateSoon()
		subnets = chosen
	}
	if !ipv6 {
		subnets = subnets[:1]
	}
	return subnets, nil
}

// setHostSysctls enables forwarding, in the network namespace of the calling thread.
func (n *Network) setHostSysctls() error {
	if err := setSysctl("ipv4/ip_forward", "1"); err != nil {
		return err
	}
	if len(n.subnets) == 1 {
		return nil
	}
	if on, err := readSysctl("ipv6/conf/all/forwarding"); err != nil {
		return fmt.Errorf("read sysctl net.ipv6.conf.all.forwarding: %w", err)
	} else if on != "0" {
		return nil
	}
	// With forwarding enabled, accept_ra = 1 has no effect: links configured by router advertisements would lose their
	// addresses and routes when those expire. 2 accepts advertisements in any case.
	links, err := os.ReadDir(sysctlPath("ipv6/conf"))
	if err != nil {
		return fmt.Errorf("list links with IPv6: %w", err)
	}
	for _, link := range links {
		if slices.Contains([]string{"all", "default", "lo", n.opts.Bridge}, link.Name()) {
			continue
		}
		name := "ipv6/conf/" + link.Name() + "/accept_ra"
		value, err := readSysctl(name)
		if err == nil && value == "1" {
			err = setSysctl(name, "2")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else the link was deleted
			return err
		}
	}
	return setSysctl("ipv6/conf/all/forwarding", "1")
}

// ensureBridge creates the bridge or corrects its settings.
func (n *Network) ensureBridge(b *base) error {
	link, err := n.links.LinkByName(n.opts.Bridge)
	if isLinkNotFound(err) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = n.opts.Bridge
		// Without a fixed address it changes with the links of pods, and ARP caches become stale.
		attrs.HardwareAddr = hardwareAddrOf(addressAt(n.subnets[0], gatewayNumber))
		if err := n.links.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("add link %s: %w", n.opts.Bridge, err)
		}
		link, err = n.links.LinkByName(n.opts.Bridge)
	}
	if err != nil {
		return fmt.Errorf("get link %s: %w", n.opts.Bridge, err)
	}
	if link.Type() != "bridge" {
		return fmt.Errorf("link %s: a link of type %s with this name exists", n.opts.Bridge, link.Type())
	}
	if b.mtu, err = n.uplinkMTU(); err != nil {
		return err
	}
	if link.Attrs().MTU != b.mtu {
		if err := n.links.LinkSetMTU(link, b.mtu); err != nil {
			return fmt.Errorf("set MTU of %s to %d: %w", n.opts.Bridge, b.mtu, err)
		}
	}
	if err := n.namespace.Do(n.setBridgeSysctls); err != nil {
		return err
	}
	if err := n.setBridgeAddresses(link); err != nil {
		return err
	}
	if err := n.links.LinkSetUp(link); err != nil {
		return fmt.Errorf("set link %s up: %w", n.opts.Bridge, err)
	}
	b.bridge = link.Attrs().Index
	return nil
}

// setBridgeSysctls runs in the network namespace of the calling thread.
func (n *Network) setBridgeSysctls() error {
	// Allows packets from 127.0.0.1 to pods. The rules drop packets from other links to 127.0.0.0/8.
	if err := setSysctl("ipv4/conf/"+n.opts.Bridge+"/route_localnet", "1"); err != nil {
		return err
	}
	if len(n.subnets) == 1 {
		return nil
	}
	// Pods must not act as routers (CVE-2020-13401). Duplicate address detection is not needed on the bridge.
	for _, s := range [][2]string{{"disable_ipv6", "0"}, {"accept_ra", "0"}, {"accept_dad", "0"}} {
		if err := setSysctl("ipv6/conf/"+n.opts.Bridge+"/"+s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

// setBridgeAddresses gives the bridge the host's addresses in the subnets and removes all others except link-local ones.
func (n *Network) setBridgeAddresses(link netlink.Link) error {
	have, err := DumpLinks(func() ([]netlink.Addr, error) { return n.links.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list addresses of %s: %w", n.opts.Bridge, err)
	}
	missing := map[string]netlink.Addr{}
	for _, s := range n.subnets {
		net := ipNet(addressAt(s, gatewayNumber), s.Bits())
		missing[net.String()] = netlink.Addr{IPNet: net, Flags: flagsFor(s.Addr())}
	}
	for _, a := range have {
		if _, wanted := missing[a.IPNet.String()]; wanted {
			delete(missing, a.IPNet.String())
		} else if !a.IP.IsLinkLocalUnicast() {
			if err := n.links.AddrDel(link, &a); err != nil {
				return fmt.Errorf("remove %s from %s: %w", a.IPNet, n.opts.Bridge, err)
			}
		}
	}
	for _, a := range missing {
		if err := n.links.AddrAdd(link, &a); err != nil {
			return fmt.Errorf("add %s to %s: %w", a.IPNet, n.opts.Bridge, err)
		}
	}
	return nil
}

// flagsFor disables duplicate address detection for IPv6 addresses, which takes a second.
func flagsFor(a netip.Addr) int {
	if a.Is6() {
		return unix.IFA_F_NODAD
	}
	return 0
}

// uplinkMTU returns the smallest MTU of the links with a default route, but at most that of Ethernet. In the namespace of a user it is at
// most that of pasta: its device has no segmentation offload, so TCP segments are of this size, and pasta copies them one by one.
func (n *Network) uplinkMTU() (int, error) {
	const ethernet = 1500
	const pasta = 65520
	const least = 1280 // IPv6
	routes, err := DumpLinks(func() ([]netlink.Route, error) { return n.links.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return 0, fmt.Errorf("list routes: %w", err)
	}
	mtu := ethernet
	if n.opts.Forwarder != nil {
		mtu = pasta
	}
	for _, r := range routes {
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones > 0 {
				continue
			}
		}
		link, err := n.links.LinkByIndex(r.LinkIndex)
		if err == nil {
			mtu = min(mtu, max(link.Attrs().MTU, least))
		} else if !isLinkNotFound(err) {
			return 0, fmt.Errorf("get link %d: %w", r.LinkIndex, err)
		}
	}
	return mtu, nil
}
