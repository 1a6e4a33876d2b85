package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/podstead/podstead/runtime/network/kernel"
	"github.com/podstead/podstead/runtime/network/ruleset"
)

// linkRemoval is a link to be removed, with the pod that had it.
type linkRemoval struct{ uid, link string }

// Teardown takes a pod's network away: its host ports when it returns, its link soon after, since the kernel takes long to
// remove one. Only then its address may be another's. A pod that has no network is no error.
func (n *Network) Teardown(ctx context.Context, uid string) error {
	release, err := n.lock(ctx)
	if err == nil {
		defer release()
		err = n.tearDown(ctx, uid)
	}
	if err != nil {
		return fmt.Errorf("take down network of pod %s: %w", uid, err)
	}
	return nil
}

// tearDown ends a lease but for its link. The turn is held. Repeated, it does again whatever may not have been done.
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
		err := n.step(ctx, "unpublish ports", func() error { return n.unpublish(ctx, l) })
		if err == nil {
			err = n.step(ctx, "revoke sender", func() error { return n.revokeSender(ctx, l) })
		}
		if err != nil {
			// The lease stays, so that the next call does it; and should a Setup come before, it writes the ruleset anew.
			n.base = nil
			return errors.Join(append(errs, err)...)
		}
		n.removeLink(uid, n.leases[uid])
	}
	return errors.Join(errs...)
}

// withdraw deletes the elements of a lease's ports. Where they cannot be deleted the map is not what it should be, and is
// written anew.
func (n *Network) unpublish(ctx context.Context, l *attachment) error {
	err := n.rules.DeletePorts(ctx, l.endpoint())
	if errors.Is(err, ruleset.ErrStale) {
		if exists, err := n.rules.Exists(ctx); !exists {
			return err
		}
		return n.rules.Write(ctx, n.endpoints(), n.subnets)
	}
	return err
}

// revokeSender reverts allowSender.
func (n *Network) revokeSender(ctx context.Context, l *attachment) error {
	err := n.rules.DeleteSenders(ctx, l.endpoint())
	if errors.Is(err, ruleset.ErrStale) {
		if found, err := n.rules.GuardExists(ctx); !found {
			return err
		}
		_, err = n.rules.WriteGuard(ctx, n.endpoints())
	}
	return err
}

// removeLink has the link of a leaving pod removed beside the callers. The channel is closed when that was removal.
func (n *Network) removeLink(uid string, l *attachment) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.removal != nil {
		select {
		case <-l.removal: // without success, or it would not be here
		default:
			return l.removal
		}
	}
	l.removal = make(chan struct{})
	n.removals = append(n.removals, linkRemoval{uid, l.Link})
	n.start(removeLinks, n.removeLinks)
	return l.removal
}

// removeLinks is the worker that removes links, one after the other: the kernel would not do two at a time.
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
			n.log.Warn("the link of a pod that is gone cannot be removed; its address stays taken",
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
	h, err := n.namespace.Netlink() // not that of the callers, who would wait for the answer
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkDel(link)
	}
	if err != nil && !kernel.IsNotFound(err) {
		return fmt.Errorf("remove link %s: %w", name, err)
	}
	return nil
}

// finishRemoval ends a lease whose link has been removal to remove.
func (n *Network) finishRemoval(uid string, removed bool) {
	n.sem <- struct{}{} // every holder is done within its time limits
	defer func() { <-n.sem }()
	n.mu.Lock()
	l := n.leases[uid]
	if removed {
		delete(n.leases, uid)
	}
	n.mu.Unlock()
	if removed {
		if err := n.saveLeases(); err != nil {
			n.log.Warn("the leases of the network cannot be kept", slog.Any("error", err))
		}
	}
	close(l.removal)
}

// Reconcile takes away what belongs to no pod of live, which are UIDs: leases with their host ports and links, and links
// without a lease. For the others it makes sure of what all pods need. Call it once after New, before the first Setup, and
// again whenever something may have been lost, such as after another program has flushed the ruleset.
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
	var uids []string
	for uid := range n.leases {
		uids = append(uids, uid)
	}
	for _, uid := range uids {
		if n.leases[uid].Leaving || !slices.Contains(live, uid) {
			errs = append(errs, n.tearDown(ctx, uid))
		}
	}
	links, err := n.podLinks()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
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
	return errors.Join(errs...)
}

func (n *Network) hasLink(name string) bool {
	for _, l := range n.leases {
		if l.Link == name {
			return true
		}
	}
	return false
}

// podLinks are the machine's ends of all veth pairs that are ours by name.
func (n *Network) podLinks() ([]netlink.Link, error) {
	all, err := kernel.Dump(n.links.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return slices.DeleteFunc(all, func(l netlink.Link) bool {
		return l.Type() != "veth" || !strings.HasPrefix(l.Attrs().Name, ruleset.LinkPrefix(n.opts.Bridge))
	}), nil
}

// takenAddresses is the set of addresses that are somebody's.
func (n *Network) takenAddresses() func(netip.Addr) bool {
	taken := map[netip.Addr]bool{}
	for _, l := range n.leases {
		for _, ip := range l.IPs {
			taken[ip] = true
		}
	}
	return func(a netip.Addr) bool { return taken[a] }
}

// Remove takes the bridge, the ruleset and what was put into other firewalls away. It waits for links that are being removed, and it
// is an error if a pod has its network still. The sysctls stay: who else relies on them by now cannot be known.
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
				return fmt.Errorf("pod %q has it", l.Pod)
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
	bridge, err := n.links.LinkByName(n.opts.Bridge)
	if err == nil {
		err = n.links.LinkDel(bridge)
	}
	if err != nil && !kernel.IsNotFound(err) {
		errs = append(errs, fmt.Errorf("remove %s: %w", n.opts.Bridge, err))
	}
	n.mu.Lock()
	n.subnets = nil
	n.mu.Unlock()
	return errors.Join(append(errs, n.saveLeases())...)
}
