package network

import (
	"github.com/podstead/podstead/runtime/network/lease"
	"github.com/podstead/podstead/runtime/network/ruleset"
)

// attachment is a pod's lease with the state that is not saved.
type attachment struct {
	lease.Lease

	hidden  bool          // the first Setup has not completed, so the pod is not a peer yet
	removal chan struct{} // closed after the attempt to remove the link; nil if none was started
}

func attachments(leases map[string]*lease.Lease) map[string]*attachment {
	all := make(map[string]*attachment, len(leases))
	for uid, l := range leases {
		all[uid] = &attachment{Lease: *l}
	}
	return all
}

// endpoint returns what the rules need of the pod.
func (a *attachment) endpoint() ruleset.Endpoint {
	return ruleset.Endpoint{Link: a.Link, IPs: a.IPs, Ports: a.Ports}
}

// endpoints returns the pods that are not being torn down.
func (n *Network) endpoints() []ruleset.Endpoint {
	var all []ruleset.Endpoint
	for _, l := range n.leases {
		if !l.Leaving {
			all = append(all, l.endpoint())
		}
	}
	return all
}
