package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// removalTimeout bounds the wait for the removal of the link that has the pod's last address.
const removalTimeout = 2 * time.Second

// rollbackTimeout bounds the cleanup after a failed Setup.
const rollbackTimeout = 10 * time.Second

// Setup sets up the network of a pod. It is idempotent: repeated with the same request, it completes a setup that was
// interrupted, and returns the same addresses. If the first Setup of a pod fails, it is rolled back. The error is a
// *ConflictError if a host port is in use, or an *UnusableError; see Check.
//
// It takes about a millisecond, and up to removalTimeout longer while a pod of the same name is being removed.
func (n *Network) Setup(ctx context.Context, r Request) (Result, error) {
	result, err := n.setUp(ctx, r)
	if err != nil {
		return Result{}, fmt.Errorf("set up network of pod %q: %w", r.PodName, err)
	}
	return result, nil
}

func (n *Network) setUp(ctx context.Context, r Request) (Result, error) {
	if err := r.check(); err != nil {
		return Result{}, err
	}
	release, err := n.lockAfterRemoval(ctx, r)
	if err != nil {
		return Result{}, err
	}
	defer release()
	old := n.leases[r.UID]
	if err := n.conflict(r.UID, r.Ports); err != nil {
		return Result{}, err
	}
	if old == nil && r.NetnsPath != "" {
		if err := n.listeners(ctx, r.Ports); err != nil {
			return Result{}, err
		}
	}
	if r.NetnsPath != "" {
		if err := n.ensureBase(ctx); err != nil {
			return Result{}, err
		}
	}
	l, err := n.planLease(r, old)
	if err != nil {
		return Result{}, err
	}
	n.setLease(r.UID, l)
	err = n.step(ctx, "save leases", n.saveLeases)
	if err == nil && l.Link != "" {
		err = n.apply(ctx, r, l, old)
	}
	if err != nil {
		return Result{}, n.rollback(ctx, r.UID, old, err)
	}
	n.addPeer(l)
	return Result{IPs: slices.Clone(l.IPs)}, nil
}

// lockAfterRemoval waits for the removal of the links of the pod's last sandbox and of a pod with the same name, whose
// address it reuses. Then it locks.
func (n *Network) lockAfterRemoval(ctx context.Context, r Request) (release func(), err error) {
	for waited := false; ; waited = true {
		if release, err = n.lock(ctx); err != nil {
			return nil, err
		}
		uid, l := n.findLeaving(r)
		switch {
		case l == nil, waited && uid != r.UID:
			return release, nil
		case waited:
			release()
			return nil, fmt.Errorf("link %s of the last sandbox could not be removed", l.Link)
		}
		removal := n.removeLink(uid, l)
		release()
		if err := await(ctx, removal, removalTimeout); err != nil {
			return nil, err
		}
	}
}

// await waits until the channel is closed. Reaching the limit is no error; the end of ctx is.
func await(ctx context.Context, done <-chan struct{}, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-done:
	case <-limited.Done():
	}
	return ctx.Err()
}

// findLeaving finds a lease whose link is being removed, by the pod's UID, or else by its name.
func (n *Network) findLeaving(r Request) (string, *attachment) {
	if l := n.leases[r.UID]; l != nil {
		if l.Leaving {
			return r.UID, l
		}
		return "", nil
	}
	for uid, l := range n.leases {
		if l.Leaving && l.Pod == r.PodName {
			return uid, l
		}
	}
	return "", nil
}

// planLease returns the new lease of a pod. It keeps the addresses and the link of the old one.
func (n *Network) planLease(r Request, old *attachment) (*attachment, error) {
	l := &attachment{
		Lease:  Lease{Pod: r.PodName, Names: slices.Clone(r.Names), Ports: slices.Clone(r.Ports)},
		hidden: true,
	}
	if old != nil {
		l.hidden = old.hidden
	}
	if r.NetnsPath == "" {
		if old != nil && old.Link != "" {
			return nil, errors.New("pod has a network of its own, not that of the host")
		}
		return l, nil
	}
	if old != nil && old.Link != "" {
		l.IPs, l.Link = old.IPs, old.Link
		return l, nil
	}
	n.mu.Lock()
	last := slices.Clone(n.state.Addresses)
	n.mu.Unlock()
	taken := n.takenAddresses()
	ips, err := allocateAddresses(n.subnets, r.PodName, taken, last)
	if err != nil {
		return nil, err
	}
	l.IPs, l.Link = ips, newLinkName(n.opts.Bridge)
	return l, nil
}

// apply creates what the lease describes.
func (n *Network) apply(ctx context.Context, r Request, l, old *attachment) error {
	if err := n.step(ctx, "allow sender", func() error { return n.allowSender(ctx, l) }); err != nil {
		return err
	}
	if err := n.connect(ctx, r.UID, r.NetnsPath, l); err != nil {
		n.base = nil // the bridge may have been deleted
		return err
	}
	if err := n.step(ctx, "publish ports", func() error { return n.publish(ctx, l, old) }); err != nil {
		return err
	}
	if err := n.step(ctx, "forward ports", func() error { return n.forward(ctx, r.UID, l) }); err != nil {
		return err
	}
	return n.step(ctx, "delete UDP flows", func() error { return n.deleteUDPFlows(l.Ports) })
}

// allowSender lets the link of a pod send from the pod's addresses. The caller holds lock, and base is not nil.
func (n *Network) allowSender(ctx context.Context, l *attachment) error {
	if !n.base.guarded {
		return nil
	}
	err := n.rules.ChangeSenders(ctx, l.endpoint(), addElements)
	if errors.Is(err, errStale) {
		n.base.guarded, err = n.rules.WriteGuard(ctx, n.endpoints())
	}
	return err
}

// publish forwards the pod's host ports.
func (n *Network) publish(ctx context.Context, l, old *attachment) error {
	if old != nil && !slices.Equal(old.Ports, l.Ports) {
		return n.rules.Write(ctx, n.endpoints(), n.subnets)
	}
	err := n.rules.ChangePod(ctx, l.endpoint(), addElements)
	if errors.Is(err, errStale) {
		return n.rules.Write(ctx, n.endpoints(), n.subnets)
	}
	return err
}

// rollback removes what a first Setup has created. After a repeated Setup, the pod keeps its old lease.
func (n *Network) rollback(ctx context.Context, uid string, old *attachment, cause error) error {
	if old != nil {
		n.setLease(uid, old)
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if err := n.tearDown(ctx, uid); err != nil {
		return fmt.Errorf("%w; roll back: %w", cause, err)
	}
	return cause
}

// setLease sets the lease of a pod.
func (n *Network) setLease(uid string, l *attachment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leases[uid] = l
	n.listed = nil
}

// addPeer makes a pod visible to others and remembers its address.
func (n *Network) addPeer(l *attachment) {
	n.mu.Lock()
	l.hidden = false
	n.notify()
	changed := len(l.IPs) > 0 && n.state.Remember(l.Pod, l.IPs[0])
	n.mu.Unlock()
	if changed {
		n.saveStateSoon()
	}
}
