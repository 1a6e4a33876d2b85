package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime/forwarder"
)

// Check reports whether the host ports of a pod are free. The error is a *ConflictError if a port is in use, and an *UnusableError if a
// user cannot have it. It reserves nothing; Setup checks again.
//
// A port on which a process of the host listens is refused too, since packets would no longer reach that process. The
// kubelet does not check this, and CNI's portmap silently takes over the port. The check is best effort: it applies to
// pods without a lease and with a network of their own, and misses processes that start to listen later.
func (n *Network) Check(r Request) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := n.conflict(r.UID, r.Ports); err != nil {
		return err
	}
	n.mu.Lock()
	_, known := n.leases[r.UID]
	n.mu.Unlock()
	if known || r.NetnsPath == "" {
		return nil
	}
	return n.listeners(context.Background(), r.Ports) //nolint:forbidigo // for Admit, which has none; the forwarder bounds its answer
}

// conflict finds another pod with one of the ports.
func (n *Network) conflict(uid string, ports []Port) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, l := range n.leases {
		if other == uid || l.Leaving {
			continue
		}
		for _, p := range ports {
			if slices.ContainsFunc(l.Ports, p.Overlaps) {
				return &ConflictError{Port: p, Holder: l.Pod}
			}
		}
	}
	return nil
}

// listeners finds a process of the host that listens on one of the ports, and with a forwarder, any reason why it cannot listen on them.
func (n *Network) listeners(ctx context.Context, ports []Port) error {
	if len(ports) == 0 {
		return nil
	}
	check := func(p forwarder.Port) error { return n.opts.Forwarder.Check(ctx, p) }
	host := Namespace{} // the forwarder is in that of the host
	if n.opts.Forwarder == nil {
		host = n.namespace
		check = func(p forwarder.Port) error {
			err := forwarder.Check(p)
			if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT) { // the host can get the address later
				return nil
			}
			return err
		}
	}
	return host.Do(func() error {
		for _, p := range ports {
			if on, ok := p.onHost(); ok { // SCTP is not checked
				if err := portError(ports, check(on)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// boundByOthers finds processes of the host that listen on host ports of pods. They were started after the pod, and get no connections.
func (n *Network) boundByOthers(ctx context.Context) (findings []Finding, err error) {
	if n.opts.Forwarder != nil { // it listens, so no other process does
		return nil, nil
	}
	type hostPort struct {
		pod  string
		port Port
	}
	var ports []hostPort
	n.mu.Lock()
	for _, l := range n.leases {
		if l.Link == "" || l.Leaving { // the pod itself may listen in the host network
			continue
		}
		for _, p := range l.Ports {
			ports = append(ports, hostPort{l.Pod, p})
		}
	}
	n.mu.Unlock()
	order.Sort(ports, func(a, b hostPort) int {
		return cmp.Or(strings.Compare(a.pod, b.pod), cmp.Compare(a.port.HostPort, b.port.HostPort))
	})
	for _, p := range ports {
		err := n.listeners(ctx, []Port{p.port})
		conflict, bound := errors.AsType[*ConflictError](err)
		switch {
		case bound:
			process := "a process of the host"
			if conflict.PID != 0 {
				process = fmt.Sprintf("%s (process %d)", conflict.Process, conflict.PID)
			}
			findings = append(findings, Finding{
				Problem: fmt.Sprintf("%s listens on host port %s of pod %q, which gets its connections", process, p.port, p.pod),
				Hint:    "let the process listen on another port, or change hostPort of the pod",
			})
		case err != nil:
			return findings, err
		}
	}
	return findings, nil
}

// ConflictError means that a host port is in use by a pod or a process.
type ConflictError struct {
	// Port is the requested port.
	Port Port
	// Holder is the pod that uses the port. It is empty if a process listens on it.
	Holder string
	// PID and Process identify the process, or are zero if it was not found.
	PID     int
	Process string
}

func (e *ConflictError) Error() string {
	switch {
	case e.Holder != "":
		return fmt.Sprintf("host port %s: in use by pod %q", e.Port, e.Holder)
	case e.PID != 0:
		return fmt.Sprintf("host port %s: in use by %s (process %s)", e.Port, e.Process, strconv.Itoa(e.PID))
	}
	return fmt.Sprintf("host port %s: in use by a process of the host", e.Port)
}
