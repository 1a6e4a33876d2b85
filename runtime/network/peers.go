package network

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/podstead/podstead/runtime/network/subnet"
)

// Changed returns a channel that is closed at the next change of the peers. Take it before Peers, so that no change is lost
// between the two.
func (n *Network) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Peers are all pods of the machine that have their network, sorted by name. A pod's own name belongs to it: where another
// has it as its host name, it does not count there, and neither does localhost.
func (n *Network) Peers() []Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	owners := map[string]bool{"localhost": true}
	for _, l := range n.leases {
		owners[l.Pod] = true
	}
	var peers []Peer
	for uid, l := range n.leases {
		if l.Leaving || l.hidden {
			continue
		}
		p := Peer{UID: uid, PodName: l.Pod, IPs: slices.Clone(l.IPs), Names: []string{l.Pod}}
		if l.Link == "" {
			p.IPs = subnet.Gateways(n.subnets)
		}
		for _, name := range l.Names {
			if name != "" && !owners[name] && !slices.Contains(p.Names, name) {
				p.Names = append(p.Names, name)
			}
		}
		peers = append(peers, p)
	}
	slices.SortFunc(peers, func(a, b Peer) int {
		return cmp.Or(strings.Compare(a.PodName, b.PodName), strings.Compare(a.UID, b.UID))
	})
	return peers
}

// Hosts are the lines of /etc/hosts that name the peers, but for the pod with this UID, whose own lines are another's
// matter.
func Hosts(peers []Peer, uid string) string {
	var b strings.Builder
	for _, p := range peers {
		if p.UID == uid {
			continue
		}
		for _, ip := range p.IPs {
			b.WriteString(ip.String() + "\t" + strings.Join(p.Names, "\t") + "\n")
		}
	}
	return b.String()
}

// Gateways are the machine's addresses on the bridge, IPv4 first: pods reach the machine there. There are none before the
// first pod has been set up.
func (n *Network) Gateways() []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return subnet.Gateways(n.subnets)
}
