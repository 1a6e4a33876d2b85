package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/forwarder"
)

// The forwarder connects to pods from the addresses of clients, which this host does not have. Pods send the replies to their gateway. Here
// they are routed to the forwarder: connections of its sockets have a mark, the replies get the mark of their connection, and packets with
// the mark are local. The three parts are a table of nftables, a rule for each family, and the route in the table of the rules.

const (
	// sourceMark is the mark of sockets and connections with addresses of clients. No other program marks packets in the network namespace
	// of a daemon without root.
	sourceMark = 0x7073
	// sourceTable is the routing table with the route to this host, and sourcePriority the priority of the rules, before that of all others
	// but the one of local addresses.
	sourceTable, sourcePriority = 0x7073, 100
)

// sourcesTable is a table of its own, which is written without the others: the kernel may not support what it has.
func (r *ruleset) sourcesTable() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: r.bridge + "-sources"}
}

// WriteSources replaces the rules that mark connections and the replies of pods.
func (r *ruleset) WriteSources(ctx context.Context) error {
	return r.replace(ctx, r.sourcesTable(), func(w tableWriter) error {
		isMark := &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(sourceMark)}
		w.rule(w.chain("output", nftables.ChainTypeFilter, nftables.ChainHookOutput, nftables.ChainPriorityMangle), []expr.Any{
			&expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, isMark, &expr.Ct{Key: expr.CtKeyMARK, Register: 1, SourceRegister: true},
		})
		w.rule(w.chain("prerouting", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle),
			matchLink(expr.MetaKeyIIFNAME, expr.CmpOpEq, r.bridge), []expr.Any{
				&expr.Ct{Key: expr.CtKeyMARK, Register: 1}, isMark, &expr.Meta{Key: expr.MetaKeyMARK, Register: 1, SourceRegister: true},
			})
		return nil
	})
}

// keepSources prepares the network for sockets with the addresses of clients. Without support of the kernel, clients have the address of
// the gateway, with a logged warning. The caller holds lock.
func (n *Network) keepSources(ctx context.Context) {
	err := n.rules.WriteSources(ctx)
	if err == nil {
		err = n.routeSources()
	}
	n.mark = sourceMark
	if err != nil {
		n.mark = 0
		n.log.WarnContext(ctx, "pods see the address of their gateway in place of that of clients of host ports", slog.Any("error", err))
	}
}

// routeSources routes marked packets of pods to this host.
func (n *Network) routeSources() error {
	lo, err := n.links.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("get link lo: %w", err)
	}
	for i := range n.subnets {
		family, every := netlink.FAMILY_V4, net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
		if i > 0 {
			family, every = netlink.FAMILY_V6, net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
		}
		if err := n.links.RouteReplace(&netlink.Route{
			Table: sourceTable, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, LinkIndex: lo.Attrs().Index, Dst: &every, Family: family,
		}); err != nil {
			return fmt.Errorf("add route to table %d: %w", sourceTable, err)
		}
		if err := n.links.RuleAdd(n.sourceRule(family)); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add rule for mark %#x: %w", sourceMark, err)
		}
	}
	return nil
}

// sourceRule selects the table for marked packets of pods. Those of the forwarder have the mark too, and are sent to the pod.
func (n *Network) sourceRule(family int) *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family, rule.Mark, rule.IifName, rule.Table, rule.Priority = family, sourceMark, n.opts.Bridge, sourceTable, sourcePriority
	return rule
}

// removeSources reverts keepSources. The route has no effect without the rules.
func (n *Network) removeSources() error {
	var errs []error
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		if err := n.links.RuleDel(n.sourceRule(family)); err != nil && !isNotFound(err) && !errors.Is(err, unix.EAFNOSUPPORT) {
			errs = append(errs, fmt.Errorf("remove rule for mark %#x: %w", sourceMark, err))
		}
	}
	return errors.Join(errs...)
}

// podSide describes this network for the forwarder. The caller holds lock.
func (n *Network) podSide() forwarder.Network {
	return forwarder.Network{Mark: n.mark, Subnets: n.subnets}
}

// forwards returns the host ports of a pod for the forwarder.
func (l *Lease) forwards() (all []forwarder.Forward) {
	for _, p := range l.Ports {
		if on, ok := p.onHost(); ok {
			all = append(all, forwarder.Forward{Port: on, To: l.IPs, ToPort: p.ContainerPort})
		}
	}
	return all
}

// onHost returns the port as the forwarder has it. ok is false for SCTP, which it does not forward.
func (p Port) onHost() (on forwarder.Port, ok bool) {
	protocol := forwarder.TCP
	switch protocolNumbers[p.Protocol] {
	case unix.IPPROTO_UDP:
		protocol = forwarder.UDP
	case unix.IPPROTO_SCTP:
		return forwarder.Port{}, false
	}
	return forwarder.Port{Protocol: protocol, Addr: p.HostIP, Port: p.HostPort}, true
}

// forward opens the host ports of a pod on the host, if that is another network namespace. The caller holds lock.
func (n *Network) forward(ctx context.Context, uid string, l *attachment) error {
	if n.opts.Forwarder == nil {
		return nil
	}
	return portError(l.Ports, n.opts.Forwarder.Set(ctx, uid, n.podSide(), l.forwards()))
}

// unforward closes the host ports of a pod on the host. The caller holds lock.
func (n *Network) unforward(ctx context.Context, uid string) error {
	if n.opts.Forwarder == nil {
		return nil
	}
	return n.opts.Forwarder.Set(ctx, uid, n.podSide(), nil)
}

// forwardAll opens the host ports of all pods on the host, and closes all others. The caller holds lock.
func (n *Network) forwardAll(ctx context.Context) error {
	if n.opts.Forwarder == nil {
		return nil
	}
	all := map[string][]forwarder.Forward{}
	for uid, l := range n.leases {
		if ports := l.forwards(); !l.Leaving && l.Link != "" && len(ports) > 0 {
			all[uid] = ports
		}
	}
	if err := n.opts.Forwarder.Replace(ctx, n.podSide(), all); err != nil {
		return fmt.Errorf("open host ports: %w", err)
	}
	return nil
}

// UnusableError means that a user without root cannot have a host port.
type UnusableError struct {
	Port Port
	// Err is EACCES for a port below net.ipv4.ip_unprivileged_port_start, or EADDRNOTAVAIL if the host does not have the address.
	Err error
}

func (e *UnusableError) Error() string {
	if errors.Is(e.Err, unix.EADDRNOTAVAIL) {
		return fmt.Sprintf("host port %s: the host does not have the address %s", e.Port, e.Port.HostIP)
	}
	return fmt.Sprintf("host port %s: %v", e.Port, e.Err)
}

// Unwrap returns the error number.
func (e *UnusableError) Unwrap() error { return e.Err }

// portError returns the error of the forwarder for one of these ports as a [*ConflictError] or an [*UnusableError].
func portError(ports []Port, err error) error {
	e, is := errors.AsType[*forwarder.Error](err)
	if !is {
		return err
	}
	for _, p := range ports {
		if on, ok := p.onHost(); !ok || on != e.Port {
			continue
		}
		if errors.Is(e, unix.EADDRINUSE) {
			return &ConflictError{Port: p, PID: e.PID, Process: e.Process}
		}
		return &UnusableError{p, e.Unwrap()}
	}
	return err
}
