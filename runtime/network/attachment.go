package network

// attachment is a pod's lease with the state that is not saved.
type attachment struct {
	Lease

	hidden  bool          // the first Setup has not completed, so the pod is not a peer yet
	removal chan struct{} // closed after the attempt to remove the link; nil if none was started
}

func attachments(leases map[string]*Lease) map[string]*attachment {
	all := make(map[string]*attachment, len(leases))
	for uid, l := range leases {
		all[uid] = &attachment{Lease: *l}
	}
	return all
}

// endpoint returns what the rules need of the pod.
func (a *attachment) endpoint() endpoint {
	return endpoint{Link: a.Link, IPs: a.IPs, Ports: a.Ports}
}

// endpoints returns the pods that are not being torn down.
func (n *Network) endpoints() []endpoint {
	var all []endpoint
	for _, l := range n.leases {
		if !l.Leaving {
			all = append(all, l.endpoint())
		}
	}
	return all
}
