package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

// NetworkMode is what pods that are not in the machine's network have.
type NetworkMode string

// The modes.
const (
	// NetworkBridge gives each pod an address, and its host ports.
	NetworkBridge NetworkMode = "bridge"
	// NetworkNone gives pods a loopback, and nothing else.
	NetworkNone NetworkMode = "none"
)

// startNetwork opens the network, and takes away what is left of pods that are gone. Where that cannot be done (a kernel without
// nftables, another's link with the bridge's name), pods that run are looked after none the less, and those with hostNetwork
// can start; the others are told when they want a network.
func (r *Runtime) startNetwork(ctx context.Context) error {
	var err error
	if r.network, err = network.New(ctx, networkOptions(r.opts, r.boot)); err != nil {
		return err
	}
	records, err := record.Sandboxes(ctx, r.client)
	if err != nil {
		return err
	}
	var live []string
	for _, s := range records {
		live = append(live, s.Labels[record.LabelUID])
	}
	if err := r.network.Reconcile(ctx, live); err != nil {
		r.log.WarnContext(ctx, "the network is not as it should be", slog.Any("error", err))
	}
	return nil
}

func networkOptions(o Options, boot string) network.Options {
	return network.Options{
		StateFile: filepath.Join(o.StateDir, "network.json"), LeaseFile: filepath.Join(o.RunDir, "network.json"),
		BootID: boot, Bridge: o.Bridge, Subnets: o.Subnets, Log: o.Logger,
	}
}

// networkRequest is what a pod wants of the network.
func networkRequest(uid string, pod *spec.Pod, pins netns.Pins) network.Request {
	request := network.Request{UID: uid, PodName: pod.Name, Names: peerNames(pod), NetnsPath: pins.Network}
	for _, p := range pod.HostPorts() {
		ip, err := netip.ParseAddr(p.HostIP)
		if err != nil {
			ip = netip.Addr{} // all of the machine's: a wrong one was refused with the pod file
		}
		request.Ports = append(request.Ports, network.Port{
			HostIP: ip, HostPort: uint16(p.HostPort), ContainerPort: uint16(p.ContainerPort), Protocol: p.Protocol, //nolint:gosec // checked with the pod file
		})
	}
	return request
}

// peerNames are the names by which other pods find a pod beside its own.
func peerNames(pod *spec.Pod) []string {
	names := oci.Names(pod)
	if pod.Subdomain != "" {
		names = append(names, oci.Hostname(pod)+"."+pod.Subdomain)
	}
	return names
}

// connect gives a sandbox its network, and returns its addresses.
func (r *Runtime) connect(ctx context.Context, uid string, pod *spec.Pod, pins netns.Pins) ([]string, error) {
	request := networkRequest(uid, pod, pins)
	if r.opts.NetworkMode == NetworkNone {
		if len(request.Ports) > 0 && !pod.HostNetwork {
			return nil, errNoHostPorts
		}
		request.NetnsPath = "" // the ports of the machine's network are held all the same
	}
	result, err := r.network.Setup(ctx, request)
	if err != nil {
		return nil, err
	}
	if pod.HostNetwork {
		return r.hostIPs(), nil
	}
	ips := make([]string, len(result.IPs))
	for i, ip := range result.IPs {
		ips[i] = ip.String()
	}
	return ips, nil
}

var errNoHostPorts = errors.New(`host ports need network mode "bridge", or hostNetwork`)

// neighbours keeps the names of the machine's pods in every pod's /etc/hosts, until ctx ends.
func (r *Runtime) neighbours(ctx context.Context) {
	for {
		changed := r.network.Changed()
		for uid, p := range r.index.All() {
			if err := r.renewHosts(r.etcDir(uid, p.Sandbox), uid, p.Pod); err != nil {
				r.log.WarnContext(ctx, "a pod does not see its neighbours", slog.String("pod", p.Pod.Name), slog.Any("error", err))
			}
		}
		select {
		case <-changed:
		case <-r.index.Changed():
		case <-ctx.Done():
			return
		}
	}
}

// peersOf is what a pod's /etc/hosts says of the other pods, and its own addresses.
func (r *Runtime) peersOf(uid string) (ips []string, lines string) {
	peers := r.network.Peers()
	if i := slices.IndexFunc(peers, func(p network.Peer) bool { return p.UID == uid }); i >= 0 {
		for _, ip := range peers[i].IPs {
			ips = append(ips, ip.String())
		}
	}
	return ips, network.Hosts(peers, uid)
}

// addressesOf are those of a pod that has its network, as its sandbox was told when it was started. The definition may be nil.
func (r *Runtime) addressesOf(uid string, pod *spec.Pod) []string {
	if pod != nil && pod.HostNetwork {
		return r.hostIPs()
	}
	ips, _ := r.peersOf(uid)
	return ips
}

// hostIPs are the addresses by which the machine is reached from outside: of each family the one that it uses for what
// goes there, or the loopback's where there is no way out.
func (r *Runtime) hostIPs() []string {
	var ips []string
	for _, to := range []struct{ network, address string }{{"udp4", "192.0.2.1:9"}, {"udp6", "[2001:db8::1]:9"}} {
		conn, err := net.Dial(to.network, to.address) //nolint:noctx // it sends nothing, and asks nobody
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

// DiagnoseNetwork looks for what keeps the pods of a runtime from their network, whether it runs or not. It changes nothing.
func DiagnoseNetwork(ctx context.Context, o Options) (findings []network.Finding, err error) {
	o = o.withDefaults()
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "podstead-doctor-") // in place of folders that may not be there yet
	if err != nil {
		return nil, fmt.Errorf("look at the network: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	options := networkOptions(o, boot)
	for name, file := range map[string]*string{"state.json": &options.StateFile, "leases.json": &options.LeaseFile} {
		text, err := os.ReadFile(*file)
		*file = filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(*file, text, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at the network: %w", err)
		}
	}
	n, err := network.New(ctx, options)
	if err != nil {
		return nil, err
	}
	findings, err = n.Diagnose(ctx)
	return findings, errors.Join(err, n.Close())
}

// RemoveNetwork takes the bridge and the rules of the network away, if no pod has a network: nobody is going to need them soon.
func (r *Runtime) RemoveNetwork(ctx context.Context) error { return r.network.Remove(ctx) }
