// Package network sets up the pod network of one host: a bridge, a veth pair and addresses for each pod, masquerading,
// and host ports. It needs no other program: links are created by netlink, and packets are translated by nftables.
//
// It owns the bridge with its links, two nftables tables with the bridge's name, two rules in each FORWARD chain of
// iptables, a few sysctls, and two files: the leases of this boot, and the state that persists (subnets and last
// addresses of pods). Two networks with different bridges can coexist on one host. The package must not create or remove
// network namespaces, and does not depend on containerd or pod files.
//
// A lease is saved before anything is created for it, so everything on the host can be derived from the leases. After a
// crash, either [Network.Setup] for the same pod completes the setup, or [Network.Reconcile] and [Network.Teardown]
// remove it. If the lease file is lost, leases of running pods are recovered from their links.
//
// If the network namespace is not that of the host, as for a daemon without root, package forwarder listens on host ports in that of the
// host and connects to pods from the addresses of clients. This package routes the replies to it, with a third table, a rule and a route.
//
// Connections to host ports on [::1] are rejected, since the kernel cannot translate them. "localhost" works through
// 127.0.0.1.
//
// Its parts: subnets and the arithmetic of addresses in them, which do not access the host; host ports and the processes that listen
// on them; leases, that is the allocation of addresses and the two files, which do not access the network; [Namespace], netlink,
// nftables and sysctls of one network namespace, which keeps no state; the ruleset, which writes the nftables rules and keeps no state
// either: callers pass the endpoints; and the diagnosis, which looks for missing kernel features, sysctls, firewalls and overlapping
// subnets, and changes nothing.
package network
