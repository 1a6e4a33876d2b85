package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// linkRemoval is a link to be removed, and the UID of its pod, if any.
type linkRemoval struct{ uid, link string }

// Teardown removes the network of a pod. It returns after the removal of the host ports. The link is removed in the
// background, since that is slow in the kernel; until then its address is not reused. A pod without a network is no
// error.
func (n *Network) Teardown(ctx context.Context, uid string) error {
	release, err := n.lock(ctx)
	if err == nil {
		defer release()
		err = n.tearDown(ctx, uid)
	}
	if err != nil {
		return fmt.Errorf("tear down network of pod %s: %w", uid, err)
	}
	return nil
}

// tearDown removes everything but the link of a lease. The caller holds lock. It is idempotent.
func (n *Network) tearDown(ctx context.Context, uid string) error {
	l := n.leases[uid]
	if l == nil {
		return nil
	}
	leaving := *l
	leaving.Leaving, leaving.removal = true, nil
	n.mu.Lock()
	if l.Link == "" {
		delete(n.leases, uid)
	} else if !l.Leaving {
		n.leases[uid] = &leaving
	}
	n.notify()
	n.mu.Unlock()
	var errs []error
	errs = append(errs, n.step(ctx, "save leases", n.saveLeases))
	if l.Link != "" {
		err := n.step(ctx, "close ports", func() error { return n.unforward(ctx, uid) })
		if err == nil {
			err = n.step(ctx, "unpublish ports", func() error { return n.unpublish(ctx, l) })
		}
		if err == nil {
			err = n.step(ctx, "revoke sender", func() error { return n.revokeSender(ctx, l) })
		}
		if err != nil {
			// The lease stays, so that the next call completes it. A Setup before that writes all rules again.
			n.base = nil
			return errors.Join(append(errs, err)...)
		}
		n.removeLink(uid, n.leases[uid])
	}
	return errors.Join(errs...)
}

// unpublish deletes a pod's host ports. If they cannot be deleted because the map has changed, all rules are written
// again.
func (n *Network) unpublish(ctx context.Context, l *attachment) error {
	err := n.rules.ChangePod(ctx, l.endpoint(), deleteElements)
	if errors.Is(err, errStale) {
		if exists, err := n.rules.Exists(ctx); !exists {
			return err
		}
		return n.rules.Write(ctx, n.endpoints(), n.subnets)
	}
	return err
}

// revokeSender reverts allowSender.
func (n *Network) revokeSender(ctx context.Context, l *attachment) error {
	err := n.rules.ChangeSenders(ctx, l.endpoint(), deleteElements)
	if errors.Is(err, errStale) {
		if found, err := n.rules.GuardExists(ctx); !found {
			return err
		}
		_, err = n.rules.WriteGuard(ctx, n.endpoints())
	}
	return err
}

// removeLink queues the link of a leaving pod for removal. The channel is closed after the attempt.
func (n *Network) removeLink(uid string, l *attachment) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.removal != nil {
		select {
		case <-l.removal: // the last attempt failed
		default:
			return l.removal
		}
	}
	l.removal = make(chan struct{})
	n.removals = append(n.removals, linkRemoval{uid, l.Link})
	n.start(removeLinks, n.removeLinks)
	return l.removal
}

// removeLinks removes queued links one by one, since the kernel serializes removals.
func (n *Network) removeLinks() {
	for {
		n.mu.Lock()
		if len(n.removals) == 0 {
			n.busy[removeLinks] = false
			n.mu.Unlock()
			return
		}
		next := n.removals[0]
		n.removals = n.removals[1:]
		n.mu.Unlock()
		err := n.deleteLink(next.link)
		if err != nil {
			n.log.Warn("link of a deleted pod could not be removed, its address stays reserved",
				slog.String("uid", next.uid), slog.String("link", next.link), slog.Any("error", err))
		}
		if next.uid != "" {
			n.finishRemoval(next.uid, err == nil)
		}
	}
}

func (n *Network) deleteLink(name string) error {
	if n.fault != nil {
		if err := n.fault("remove link"); err != nil {
			return err
		}
	}
	h, err := n.namespace.Netlink() // a connection of its own, since callers would wait for the reply
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkDel(link)
	}
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("remove link %s: %w", name, err)
	}
	return nil
}

// finishRemoval deletes the lease of a removed link.
func (n *Network) finishRemoval(uid string, removed bool) {
	n.sem <- struct{}{} // each holder is bounded by timeouts
	defer func() { <-n.sem }()
	n.mu.Lock()
	l := n.leases[uid]
	if removed {
		delete(n.leases, uid)
		n.listed = nil // other pods may have its name now
	}
	n.mu.Unlock()
	if removed {
		if err := n.saveLeases(); err != nil {
			n.log.Warn("leases of the pod network could not be saved", slog.Any("error", err))
		}
	}
	close(l.removal)
}

// Reconcile removes what belongs to none of the live pods, given by UID: leases with their host ports and links, and
// links without a lease. For live pods it restores what all pods share. Call it once after New, before the first Setup,
// and whenever something may have been lost, such as after a flush of the nftables rules.
func (n *Network) Reconcile(ctx context.Context, live []string) error {
	release, err := n.lock(ctx)
	if err == nil {
		defer release()
		err = n.reconcile(ctx, live)
	}
	if err != nil {
		return fmt.Errorf("reconcile network: %w", err)
	}
	return nil
}

func (n *Network) reconcile(ctx context.Context, live []string) error {
	var errs []error
	for _, uid := range slices.Collect(maps.Keys(n.leases)) {
		if n.leases[uid].Leaving || !slices.Contains(live, uid) {
			errs = append(errs, n.tearDown(ctx, uid))
		}
	}
	var links []netlink.Link
	errs = append(errs, n.step(ctx, "find links of pods", func() (err error) {
		links, err = n.podLinks()
		return err
	}))
	for _, link := range links {
		name := link.Attrs().Name
		if !n.hasLink(name) {
			n.mu.Lock()
			n.removals = append(n.removals, linkRemoval{link: name})
			n.start(removeLinks, n.removeLinks)
			n.mu.Unlock()
		}
	}
	exists, err := n.rules.Exists(ctx)
	if errs = append(errs, err); exists || n.inUse() {
		n.base = nil
		errs = append(errs, n.ensureBase(ctx))
	}
	n.completeRefusals(ctx)
	return errors.Join(append(errs, n.forwardAll(ctx))...)
}

func (n *Network) hasLink(name string) bool {
	for _, l := range n.leases {
		if l.Link == name {
			return true
		}
	}
	return false
}

// podLinks returns the host's ends of all veth pairs of this network.
func (n *Network) podLinks() ([]netlink.Link, error) {
	all, err := DumpLinks(n.links.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return slices.DeleteFunc(all, func(l netlink.Link) bool {
		return l.Type() != "veth" || !strings.HasPrefix(l.Attrs().Name, linkPrefix(n.opts.Bridge))
	}), nil
}

// takenAddresses returns a function that reports whether an address is leased.
func (n *Network) takenAddresses() func(netip.Addr) bool {
	taken := map[netip.Addr]bool{}
	for _, l := range n.leases {
		for _, ip := range l.IPs {
			taken[ip] = true
		}
	}
	return func(a netip.Addr) bool { return taken[a] }
}

// Remove removes the bridge and all rules. It waits for links that are being removed. It is an error if a pod still has
// its network. Sysctls are not reset, since other programs may rely on them.
func (n *Network) Remove(ctx context.Context) error {
	if err := n.remove(ctx); err != nil {
		return fmt.Errorf("remove network: %w", err)
	}
	return nil
}

func (n *Network) remove(ctx context.Context) error {
	for {
		release, err := n.lock(ctx)
		if err != nil {
			return err
		}
		var removal <-chan struct{}
		for uid, l := range n.leases {
			if !l.Leaving {
				release()
				return fmt.Errorf("in use by pod %q", l.Pod)
			}
			removal = n.removeLink(uid, l)
		}
		if removal == nil {
			defer release()
			return n.removeBase(ctx)
		}
		release()
		select {
		case <-removal:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *Network) removeBase(ctx context.Context) error {
	n.base = nil
	errs := []error{n.rules.Delete(ctx)}
	if n.opts.Forwarder != nil {
		errs = append(errs, n.removeSources())
	}
	bridge, err := n.links.LinkByName(n.opts.Bridge)
	if err == nil {
		err = n.links.LinkDel(bridge)
	}
	if err != nil && !isNotFound(err) {
		errs = append(errs, fmt.Errorf("remove link %s: %w", n.opts.Bridge, err))
	}
	n.mu.Lock()
	n.subnets, n.listed = nil, nil
	n.mu.Unlock()
	return errors.Join(append(errs, n.saveLeases())...)
}
