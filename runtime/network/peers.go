package network

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
)

// Changed returns a channel that is closed at the next change of the peers. Call it before Peers, so that no change in
// between is missed.
func (n *Network) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Peers returns all pods with a network, sorted by name. A pod name belongs to that pod: it is left out of the names of other pods. The
// case of letters makes no difference. Names with a meaning elsewhere are left out, see [spec.Unpublished], also those in leases of earlier
// versions. The result is shared and must not be changed.
func (n *Network) Peers() []Peer {
	host, err := n.hostNames.read(hostsFile)
	if n.hostNames.isNew(err) {
		n.log.Warn("cannot read all names of the host, a pod can have them too", slog.Any("error", err))
	}
	return n.peers(host)
}

// PeerOf returns the peer that is the pod with this UID, without its names.
func (n *Network) PeerOf(uid string) (p Peer, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.leases[uid]
	if l == nil || l.Leaving || l.hidden {
		return Peer{}, false
	}
	return n.peerOf(uid, l), true
}

// peerOf returns a peer without its names. The caller holds mu.
func (n *Network) peerOf(uid string, l *attachment) Peer {
	p := Peer{UID: uid, PodName: l.Pod, IPs: slices.Clone(l.IPs)}
	if l.Link == "" {
		p.IPs = gatewaysOf(n.subnets)
	}
	return p
}

// peerList is what [Network.Peers] has returned on a host with these names. It is kept until the leases change, because it is requested for
// each pod when one of them changes.
type peerList struct {
	host  []string
	peers []Peer
}

// peers is Peers on a host with these names.
func (n *Network) peers(host []string) []Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listed != nil && slices.Equal(n.listed.host, host) {
		return n.listed.peers
	}
	owners := map[string]bool{}
	for _, l := range n.leases {
		owners[l.Pod] = true
	}
	peers := make([]Peer, 0, len(n.leases))
	for uid, l := range n.leases {
		if l.Leaving || l.hidden {
			continue
		}
		p := n.peerOf(uid, l)
		if spec.Unpublished(l.Pod, host) == "" {
			p.Names = append(p.Names, l.Pod)
		}
		for _, name := range l.Names {
			if name != "" && !owners[strings.ToLower(name)] && isPublished(name, host) && !slices.Contains(p.Names, name) {
				p.Names = append(p.Names, name)
			}
		}
		peers = append(peers, p)
	}
	order.Sort(peers, func(a, b Peer) int {
		return cmp.Or(strings.Compare(a.PodName, b.PodName), strings.Compare(a.UID, b.UID))
	})
	n.listed = &peerList{host, peers}
	return peers
}

// isPublished reports whether a name of a pod is published. Of the names with a dot, those of pods with a subdomain are: they are in a
// domain that only clusters have.
func isPublished(name string, host []string) bool {
	return strings.HasSuffix(name, spec.ClusterDomain) || spec.Unpublished(strings.ToLower(name), host) == ""
}

// Hosts returns the lines of /etc/hosts for the peers, except for the pod with this UID.
func Hosts(peers []Peer, uid string) string {
	text := make([]byte, 0, 64*len(peers)) // with many pods this is called often
	for _, p := range peers {
		if p.UID == uid || len(p.Names) == 0 {
			continue
		}
		for _, ip := range p.IPs {
			text = ip.AppendTo(text)
			for _, name := range p.Names {
				text = append(append(text, '\t'), name...)
			}
			text = append(text, '\n')
		}
	}
	return string(text)
}
