package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// This file connects pods to the network: it derives what [network] needs from the definition of a pod, checks host ports, and returns
// the addresses of pods and of the host.

// NetworkMode is the network of pods without hostNetwork.
type NetworkMode string

// The modes.
const (
	NetworkBridge NetworkMode = "bridge" // each pod has an address, and its host ports
	NetworkNone   NetworkMode = "none"   // pods have a loopback interface only
)

// NetworkOptions configure the network. All fields are required, except Subnets and Forwarder; see [network.Options].
type NetworkOptions struct {
	Mode    NetworkMode
	Bridge  string
	Subnets []netip.Prefix
	BootID  string
	// Forwarder is the socket of the forwarder of host ports for a daemon without root; empty: this network namespace is that of the host.
	Forwarder string
	// MonitorPath is the absolute path of the program of the forwarder.
	MonitorPath string
	Dirs        record.Dirs
	Log         *slog.Logger
}

func (o NetworkOptions) network() network.Options {
	return network.Options{
		StateFile: o.Dirs.NetworkState(), LeaseFile: o.Dirs.NetworkLeases(),
		BootID: o.BootID, Bridge: o.Bridge, Subnets: o.Subnets, Log: o.Log,
	}
}

// Network is the network of all pods. It is safe for concurrent use.
type Network struct {
	*network.Network
	mode NetworkMode
}

// OpenNetwork opens the network and removes what is left of pods that are not in live, the UIDs of pods with a sandbox. If that fails, for
// example without nftables in the kernel, it logs a warning: running pods must be supervised, pods with hostNetwork can start, and the
// error is returned to each pod that needs the network.
func OpenNetwork(ctx context.Context, o NetworkOptions, live []string) (*Network, error) {
	options := o.network()
	if o.Forwarder != "" {
		options.Forwarder = forwarder.NewClient(ctx, o.Forwarder, "/proc/self/ns/net", o.Log)
		options.Forwarder.Program = o.MonitorPath
	}
	n, err := network.New(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := n.Reconcile(ctx, live); err != nil {
		o.Log.WarnContext(ctx, "cannot restore the network", slog.Any("error", err))
	}
	return &Network{Network: n, mode: o.Mode}, nil
}

// Connect connects a sandbox to the network, and returns its addresses.
func (n *Network) Connect(ctx context.Context, uid string, pod *spec.Pod, pins namespace.Pins) ([]string, error) {
	r := request(uid, pod, pins)
	if n.mode == NetworkNone {
		if len(r.Ports) > 0 && !pod.HostNetwork {
			return nil, errNoHostPorts
		}
		r.NetnsPath = "" // the ports of a pod with hostNetwork are reserved nevertheless
	}
	result, err := n.Setup(ctx, r)
	if err != nil {
		return nil, err
	}
	if pod.HostNetwork {
		return HostIPs(), nil
	}
	ips := make([]string, len(result.IPs))
	for i, ip := range result.IPs {
		ips[i] = ip.String()
	}
	return ips, nil
}

// request returns what a pod needs from the network.
func request(uid string, pod *spec.Pod, pins namespace.Pins) network.Request {
	r := network.Request{UID: uid, PodName: pod.Name, Names: oci.Names(pod), NetnsPath: pins.Network}
	for _, p := range pod.HostPorts() {
		ip, _ := netip.ParseAddr(p.HostIP) // none: all addresses of the host; an invalid one was refused with the pod file
		r.Ports = append(r.Ports, network.Port{
			// checked with the pod file
			HostIP: ip, HostPort: uint16(p.HostPort), ContainerPort: uint16(p.ContainerPort), Protocol: p.Protocol,
		})
	}
	return r
}

// PodPeers returns the addresses of a pod, and the lines of its /etc/hosts for the other pods.
func (n *Network) PodPeers(uid string) (ips []string, lines string) {
	return n.IPs(uid), network.Hosts(n.Peers(), uid)
}

// IPs returns the addresses of a pod in the network.
func (n *Network) IPs(uid string) (ips []string) {
	p, _ := n.PeerOf(uid)
	for _, ip := range p.IPs {
		ips = append(ips, ip.String())
	}
	return ips
}

// PodIPs returns the addresses of a pod that has a sandbox, as [Network.Connect] has returned them. The definition may be nil.
func (n *Network) PodIPs(uid string, pod *spec.Pod) []string {
	if pod != nil && pod.HostNetwork {
		return HostIPs()
	}
	return n.IPs(uid)
}

// HostIPs returns the addresses by which the host is reached: for each IP family the source address of packets to other networks, or the
// loopback address if there is no route.
func HostIPs() []string {
	var ips []string
	for _, to := range []struct{ network, address string }{{"udp4", "192.0.2.1:9"}, {"udp6", "[2001:db8::1]:9"}} {
		conn, err := net.Dial(to.network, to.address) // sends no packet and resolves no name
		if err != nil {
			continue
		}
		if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
			ips = append(ips, a.IP.String())
		}
		_ = conn.Close()
	}
	if len(ips) == 0 {
		return []string{"127.0.0.1"}
	}
	return ips
}

var errNoHostPorts = errors.New(`host ports need network mode "bridge", or hostNetwork`)

// Admit returns a [lifecycle.Refusal] for each host port that another process of the host uses. A port of another pod is no reason to
// refuse the pod: the supervisor may be about to stop that pod, and this one waits for its ports.
func (n *Network) Admit(pod *spec.Pod) []error {
	all := request("new", pod, namespace.Pins{Network: "new"})
	if pod.HostNetwork {
		all.NetnsPath = ""
	}
	var refused []error
	i := 0
	for field := range pod.HostPortFields() {
		one := all
		one.Ports = all.Ports[i : i+1]
		i++
		if err := n.admitPort(field, one, pod.HostNetwork); err != nil {
			refused = append(refused, err)
		}
	}
	return refused
}

// admitPort checks a request with one port.
func (n *Network) admitPort(field string, r network.Request, hostNetwork bool) error {
	refusal := lifecycle.Refusal{Reason: lifecycle.ReasonNodePorts, Field: field, Cause: errNoHostPorts}
	if n.mode == NetworkNone && !hostNetwork {
		refusal.Message = errNoHostPorts.Error()
		refusal.Hint = `set mode = "bridge" of [network] in podstead.toml and restart the daemon, or set hostNetwork in the pod`
		return refusal
	}
	err := n.Check(r)
	if err == nil || errors.Is(err, forwarder.ErrUnavailable) { // the start of the pod is tried again
		return nil
	}
	refusal.Message, refusal.Cause = err.Error(), err
	if conflict, is := errors.AsType[*network.ConflictError](err); is {
		refusal.Message = lifecycle.NodePortsMessage + ": " + refusal.Message
		if conflict.Holder != "" {
			return nil
		}
		refusal.Hint = portHint(conflict)
	}
	if unusable, is := errors.AsType[*network.UnusableError](err); is {
		refusal.Hint = unusableHint(unusable)
	}
	return refusal
}

// portHint returns the hint for a port that a process of the host uses. The host may need the process: it can be sshd.
func portHint(conflict *network.ConflictError) string {
	if conflict.PID != 0 { // the message has its name
		return "use another host port"
	}
	return "use another host port, or find the process of the host that needs this one with ss -lnp"
}

// unusableHint returns the hint for a port that a user without root cannot have.
func unusableHint(e *network.UnusableError) string {
	switch {
	case errors.Is(e, unix.EACCES):
		return "use a host port from 1024, or permit it as root: " +
			fmt.Sprintf("sysctl -w net.ipv4.ip_unprivileged_port_start=%d", e.Port.HostPort)
	case errors.Is(e, unix.EADDRNOTAVAIL):
		return "use an address of the host for hostIP, which ip address show lists, or omit hostIP for all addresses"
	}
	return "use another host port"
}
