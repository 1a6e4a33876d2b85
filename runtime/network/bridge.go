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

	"github.com/podstead/podstead/runtime/network/kernel"
	"github.com/podstead/podstead/runtime/network/subnet"
)

// base is what all pods need, as this process has found or made it.
type base struct {
	bridge  int // its index
	mtu     int
	guarded bool // no pod can pretend to be another
}

// ensureBase makes sure of all that pods share: subnets, sysctls, the bridge and the ruleset. Once it has, only what others
// are known to take away is looked at again, and the subnets as long as no pod is in them. The turn is held.
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
		if err := n.step(ctx, "make bridge", func() error { return n.ensureBridge(b) }); err != nil {
			return err
		}
		if err := n.step(ctx, "write ruleset", func() error { return n.rules.Write(ctx, n.endpoints(), n.subnets) }); err != nil {
			return err
		}
		err := n.step(ctx, "write guard", func() (err error) {
			b.guarded, err = n.rules.WriteGuard(ctx, n.endpoints())
			return err
		})
		if err != nil {
			return err
		}
		n.base = b
	}
	return n.step(ctx, "pass other firewalls", func() error { return n.rules.AcceptForwarded(ctx) })
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

// chooseSubnets decides which subnets are used: those of the pods that run; else those that the user names; else those
// that were used before, unless they have come to overlap; else new ones.
func (n *Network) chooseSubnets(ctx context.Context) error {
	if n.inUse() {
		if len(n.opts.Subnets) > 0 && !slices.Equal(n.opts.Subnets, n.subnets) {
			n.log.WarnContext(ctx, "the network's subnets change when no pod is in the old ones",
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
	used, err := kernel.UsedPrefixes(n.links, n.opts.Bridge)
	if err != nil {
		return nil, err
	}
	ipv6 := false
	if err := n.namespace.Do(func() error { ipv6 = kernel.HasIPv6(); return nil }); err != nil {
		return nil, err
	}
	subnets := n.state.Subnets // written with the turn held, so it can be read
	if slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return subnet.OverlapsAny(s, used) }) {
		n.log.WarnContext(ctx, "the network's subnets have come to overlap with the machine's and are chosen anew", slog.Any("old", subnets))
		subnets = nil
	}
	if len(subnets) == 0 || ipv6 && len(subnets) == 1 {
		chosen, err := subnet.Choose(used, ipv6)
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

// setHostSysctls makes the machine forward, on the thread that calls.
func (n *Network) setHostSysctls() error {
	if err := kernel.SetSysctl("ipv4/ip_forward", "1"); err != nil {
		return err
	}
	if len(n.subnets) == 1 {
		return nil
	}
	if on, err := kernel.Sysctl("ipv6/conf/all/forwarding"); err != nil {
		return fmt.Errorf("read sysctl net.ipv6.conf.all.forwarding: %w", err)
	} else if on != "0" {
		return nil
	}
	// With forwarding on, accept_ra = 1 means no: links that have their address and route from router advertisements
	// would lose them when those expire. 2 means yes, forwarding or not.
	links, err := os.ReadDir(kernel.SysctlPath("ipv6/conf"))
	if err != nil {
		return fmt.Errorf("list links with IPv6: %w", err)
	}
	for _, link := range links {
		if slices.Contains([]string{"all", "default", "lo", n.opts.Bridge}, link.Name()) {
			continue
		}
		name := "ipv6/conf/" + link.Name() + "/accept_ra"
		value, err := kernel.Sysctl(name)
		if err == nil && value == "1" {
			err = kernel.SetSysctl(name, "2")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else the link has gone
			return err
		}
	}
	return kernel.SetSysctl("ipv6/conf/all/forwarding", "1")
}

// ensureBridge makes the bridge and its settings be as they should.
func (n *Network) ensureBridge(b *base) error {
	link, err := n.links.LinkByName(n.opts.Bridge)
	if kernel.IsLinkNotFound(err) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = n.opts.Bridge
		attrs.HardwareAddr = subnet.HardwareAddr(subnet.At(n.subnets[0], subnet.GatewayNumber)) // else it changes with the pods, under everybody's ARP cache
		if err := n.links.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("add %s: %w", n.opts.Bridge, err)
		}
		link, err = n.links.LinkByName(n.opts.Bridge)
	}
	if err != nil {
		return fmt.Errorf("look for %s: %w", n.opts.Bridge, err)
	}
	if link.Type() != "bridge" {
		return fmt.Errorf("the machine has another link with the name %s: it is of type %s", n.opts.Bridge, link.Type())
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
		return fmt.Errorf("set %s up: %w", n.opts.Bridge, err)
	}
	b.bridge = link.Attrs().Index
	return nil
}

// setBridgeSysctls is for the thread that calls.
func (n *Network) setBridgeSysctls() error {
	// Packets from 127.0.0.1 may then leave for pods. Those from outside to 127.0.0.0/8 are dropped by the ruleset.
	if err := kernel.SetSysctl("ipv4/conf/"+n.opts.Bridge+"/route_localnet", "1"); err != nil {
		return err
	}
	if len(n.subnets) == 1 {
		return nil
	}
	// A pod is no router (CVE-2020-13401), and nobody else can have the addresses of the bridge.
	for _, s := range [][2]string{{"disable_ipv6", "0"}, {"accept_ra", "0"}, {"accept_dad", "0"}} {
		if err := kernel.SetSysctl("ipv6/conf/"+n.opts.Bridge+"/"+s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

// setBridgeAddresses gives the bridge the machine's addresses in the subnets, and takes all others but the link-local.
func (n *Network) setBridgeAddresses(link netlink.Link) error {
	have, err := kernel.Dump(func() ([]netlink.Addr, error) { return n.links.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list addresses of %s: %w", n.opts.Bridge, err)
	}
	missing := map[string]netlink.Addr{}
	for _, s := range n.subnets {
		net := subnet.IPNet(subnet.At(s, subnet.GatewayNumber), s.Bits())
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

// flagsFor keeps an address of IPv6 from waiting a second for another that has it.
func flagsFor(a netip.Addr) int {
	if a.Is6() {
		return unix.IFA_F_NODAD
	}
	return 0
}

// uplinkMTU is the least of the links that default routes lead to, or Ethernet's if there is none: no packet of a pod is
// then too long for the way out.
func (n *Network) uplinkMTU() (int, error) {
	const ethernet = 1500
	const least = 1280 // IPv6's
	routes, err := kernel.Dump(func() ([]netlink.Route, error) { return n.links.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return 0, fmt.Errorf("list routes: %w", err)
	}
	mtu := ethernet
	for _, r := range routes {
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones > 0 {
				continue
			}
		}
		link, err := n.links.LinkByIndex(r.LinkIndex)
		if err == nil {
			mtu = min(mtu, max(link.Attrs().MTU, least))
		} else if !kernel.IsLinkNotFound(err) {
			return 0, fmt.Errorf("look for link %d: %w", r.LinkIndex, err)
		}
	}
	return mtu, nil
}
