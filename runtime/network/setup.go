package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/runtime/network/lease"
	"github.com/podstead/podstead/runtime/network/ruleset"
)

// removalTimeout is how long a pod waits for the address that it had last, while the link that has it is being removed.
const removalTimeout = 2 * time.Second

// rollbackTimeout bounds what is done after a Setup that failed.
const rollbackTimeout = 10 * time.Second

// Setup gives a pod its network, or finds that it has it: repeated with the same request it completes whatever a crash has
// left, and gives the same addresses. Where the first Setup of a pod fails, what it made is taken away. The error is a
// *ConflictError where another has one of the host ports; see Check.
//
// It takes about a millisecond, and up to removalTimeout longer where a pod of the same name is still leaving.
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
		if err := n.listeners(r.Ports); err != nil {
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

// lockAfterRemoval waits for the turn, and before it for the linkRemoval of what the pod had before: its last sandbox, or the pod
// that it replaces and whose address it is to have.
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
			return nil, fmt.Errorf("the link %s of its last sandbox cannot be removed", l.Link)
		}
		removal := n.removeLink(uid, l)
		release()
		if err := await(ctx, removal, removalTimeout); err != nil {
			return nil, err
		}
	}
}

// await waits for the channel's end. The limit is no error, the end of ctx is.
func await(ctx context.Context, done <-chan struct{}, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-done:
	case <-limited.Done():
	}
	return ctx.Err()
}

// findLeaving finds a lease of the pod whose link is being removed: under its UID, or else its name.
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

// plan makes the lease that the pod is to have. It has the addresses and the link of its old one, if that has any.
func (n *Network) planLease(r Request, old *attachment) (*attachment, error) {
	l := &attachment{
		Lease:  lease.Lease{Pod: r.PodName, Names: slices.Clone(r.Names), Ports: slices.Clone(r.Ports)},
		hidden: true,
	}
	if old != nil {
		l.hidden = old.hidden
	}
	if r.NetnsPath == "" {
		if old != nil && old.Link != "" {
			return nil, errors.New("it has a network of its own")
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
	ips, err := lease.Allocate(n.subnets, r.PodName, taken, last)
	if err != nil {
		return nil, err
	}
	l.IPs, l.Link = ips, newLinkName(n.opts.Bridge)
	return l, nil
}

// build makes what the lease says.
func (n *Network) apply(ctx context.Context, r Request, l, old *attachment) error {
	if err := n.step(ctx, "allow sender", func() error { return n.allowSender(ctx, l) }); err != nil {
		return err
	}
	if err := n.connect(ctx, r.UID, r.NetnsPath, l); err != nil {
		n.base = nil // perhaps somebody took the bridge away
		return err
	}
	if err := n.step(ctx, "publish ports", func() error { return n.publish(ctx, l, old) }); err != nil {
		return err
	}
	return n.step(ctx, "delete UDP flows", func() error { return n.deleteUDPFlows(l.Ports) })
}

// allowSender lets the link of a pod send from the pod's addresses. The turn is held, and the base exists.
func (n *Network) allowSender(ctx context.Context, l *attachment) error {
	if !n.base.guarded {
		return nil
	}
	err := n.rules.AddSenders(ctx, l.endpoint())
	if errors.Is(err, ruleset.ErrStale) {
		n.base.guarded, err = n.rules.WriteGuard(ctx, n.endpoints())
	}
	return err
}

// publish leads the lease's host ports to the pod.
func (n *Network) publish(ctx context.Context, l, old *attachment) error {
	if old != nil && !slices.Equal(old.Ports, l.Ports) {
		return n.rules.Write(ctx, n.endpoints(), n.subnets)
	}
	err := n.rules.AddPorts(ctx, l.endpoint())
	if errors.Is(err, ruleset.ErrStale) {
		return n.rules.Write(ctx, n.endpoints(), n.subnets)
	}
	return err
}

// undo takes away what a first Setup has made. What a pod had before it keeps.
func (n *Network) rollback(ctx context.Context, uid string, old *attachment, cause error) error {
	if old != nil {
		n.setLease(uid, old)
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if err := n.tearDown(ctx, uid); err != nil {
		return fmt.Errorf("%w (and what was made of it is left: %w)", cause, err)
	}
	return cause
}

// put sets the lease of a pod.
func (n *Network) setLease(uid string, l *attachment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leases[uid] = l
}

// show makes a pod that is set up a peer, and remembers its address.
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
