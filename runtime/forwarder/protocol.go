package forwarder

import (
	"cmp"
	"fmt"
	"net/netip"
	"syscall"
)

// The protocols of ports.
const (
	TCP = "TCP"
	UDP = "UDP"
)

// Port is a port of the host.
type Port struct {
	Protocol string `json:"protocol"` // TCP or UDP
	// Addr is the address of the host. The zero value means all addresses; 0.0.0.0 and :: mean all addresses of one family.
	Addr netip.Addr `json:"addr,omitzero"`
	Port uint16     `json:"port"`
}

// String returns the port in the usual notation, such as 127.0.0.1:8080/TCP.
func (p Port) String() string {
	if !p.Addr.IsValid() {
		return fmt.Sprintf("%d/%s", p.Port, p.Protocol)
	}
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(p.Addr, p.Port), p.Protocol)
}

// addrs returns the addresses on which the port is bound: one, or the unspecified ones of both families.
func (p Port) addrs() []netip.Addr {
	if p.Addr.IsValid() {
		return []netip.Addr{p.Addr}
	}
	return []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
}

// Forward is a port of the host with the pod that it is forwarded to.
type Forward struct {
	Port
	// To are the addresses of the pod: at most one for each family. A family without one is not forwarded.
	To []netip.Addr `json:"to"`
	// ToPort is the port in the pod.
	ToPort uint16 `json:"toPort"`
}

// Network describes the network of the pods.
type Network struct {
	// Mark is the mark (SO_MARK) of sockets whose source is the address of the client. 0: sources are not kept.
	Mark int `json:"mark,omitempty"`
	// Subnets are those of pods. A client with an address in one of them gets another source, because pods would not send replies to it
	// through the gateway.
	Subnets []netip.Prefix `json:"subnets,omitempty"`
}

// request is what a client sends: the ports of all owners, of one owner, or a port to be checked. The first one follows a byte that carries
// the descriptor of the network namespace of pods.
type request struct {
	// Program is the path of the program of the client, in the first request of a connection. A worker of another build starts it, and it
	// answers the request; empty: any build answers.
	Program string               `json:"program,omitempty"`
	Network Network              `json:"network"`
	Check   *Port                `json:"check,omitempty"`
	Owner   string               `json:"owner,omitempty"`
	Ports   []Forward            `json:"ports,omitempty"`
	All     map[string][]Forward `json:"all,omitempty"`
}

// response is the answer.
type response struct {
	// Failure is why the network namespace cannot be used; empty: it can.
	Failure string `json:"failure,omitempty"`
	// Error is that of the request; nil: it was done. Errors are those of a request with all ports, by owner.
	Error  *Error            `json:"error,omitempty"`
	Errors map[string]*Error `json:"errors,omitempty"`
	// SourceError is why source addresses cannot be kept; empty: they can, or are not.
	SourceError string `json:"sourceError,omitempty"`
	// ProgramError is why the program of the client could not be started; empty: it was, or is the same one.
	ProgramError string `json:"programError,omitempty"`
}

// Error is the error of a port. It wraps an error number of bind(2): [syscall.EADDRINUSE], [syscall.EACCES] for a port that needs root, or
// [syscall.EADDRNOTAVAIL] if the host does not have the address.
type Error struct {
	Port  Port          `json:"port"`
	Errno syscall.Errno `json:"errno"`
	// PID and Process are the process that has the port, if it is known.
	PID     int    `json:"pid,omitempty"`
	Process string `json:"process,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string {
	text := fmt.Sprintf("host port %s: %v", e.Port, e.Unwrap())
	if e.PID != 0 {
		text += fmt.Sprintf(": %s (process %d)", e.Process, e.PID)
	}
	return text
}

// Unwrap returns the error number.
func (e *Error) Unwrap() error { return cmp.Or(e.Errno, syscall.EINVAL) }
