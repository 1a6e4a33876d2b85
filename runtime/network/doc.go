// Package network is the pod network of one machine: a bridge, a veth pair and addresses for each pod, masquerading, and
// host ports. It needs no program and no daemon beside it: links are made by netlink and packets are translated by one
// nftables table.
//
// It owns the bridge with everything on it, a table of the bridge's name, two rules with its name as their comment in the
// FORWARD chain of iptables where there is one, a few sysctls, and two files: the leases, which are void after a boot, and
// what lasts: the subnets and the last address of each pod. So two of them live on one machine, with two bridges. It must not make or remove network namespaces, and knows neither containerd nor pod files.
//
// What is on the machine can always be derived from the leases, and a lease is written before anything is made for it. So
// after a crash at any point either [Network.Setup] is called again for the same pod and completes it, or
// [Network.Reconcile] and [Network.Teardown] take it away. Where the leases are lost, those of pods that run are read off
// their links.
//
// Host ports on [::1] are not served: the kernel cannot translate them. Names and "localhost" work by 127.0.0.1.
package network
