package network

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/podstead/podstead/runtime/network/hostport"
)

// Check reports whether the pod may have its host ports: the error is a *ConflictError if another has one of them. It
// changes and holds nothing; Setup checks again.
//
// A port that a process of the machine listens on is refused too, since packets would no longer reach that process. (The
// kubelet does not look; what CNI's portmap then does is to take the port away silently.) That check is made for a pod that
// has no lease yet and a network of its own, and it is the best effort: a process that listens later is not heard of.
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
	return n.listeners(r.Ports)
}

// conflict finds a pod that has one of the ports.
func (n *Network) conflict(uid string, ports []Port) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, l := range n.leases {
		if other == uid || l.Leaving {
			continue
		}
		for _, p := range ports {
			if slices.ContainsFunc(l.Ports, p.Overlaps) {
				return &ConflictError{Port: p, Holder: l.Pod, HolderUID: other}
			}
		}
	}
	return nil
}

// listeners finds a process of the machine that listens on one of the ports.
func (n *Network) listeners(ports []Port) error {
	if len(ports) == 0 {
		return nil
	}
	return n.namespace.Do(func() error {
		for _, p := range ports {
			taken, err := hostport.InUse(p)
			if err != nil {
				return err
			}
			if taken {
				pid, process := hostport.Listener(p)
				return &ConflictError{Port: p, PID: pid, Process: process}
			}
		}
		return nil
	})
}

// ConflictError says that a host port is taken, and by whom: a pod, or a process of the machine.
type ConflictError struct {
	// Port is the one that was asked for.
	Port Port
	// Holder and HolderUID are the pod that has it. They are empty where a process listens there.
	Holder, HolderUID string
	// PID and Process are that process's number and name, or zero where it could not be found.
	PID     int
	Process string
}

func (e *ConflictError) Error() string {
	switch {
	case e.Holder != "":
		return fmt.Sprintf("host port %s: pod %q has it", e.Port, e.Holder)
	case e.PID != 0:
		return fmt.Sprintf("host port %s: %s (process %s) listens there", e.Port, e.Process, strconv.Itoa(e.PID))
	}
	return fmt.Sprintf("host port %s: a process of this machine listens there", e.Port)
}
