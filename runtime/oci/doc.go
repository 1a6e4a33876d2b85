// Package oci turns a container of a pod file into what an OCI runtime is told: arguments, environment, mounts, limits,
// and the files that a pod gives its containers (/etc/hosts, /etc/resolv.conf).
//
// The rules are the kubelet's and those of containerd's CRI plug-in, which a user of Kubernetes sees together. The
// package looks at the machine where a rule says so (host paths, the machine's own resolv.conf), makes missing host paths
// where their type asks for it, and changes nothing else. It knows nothing of engines, pods' lives, or where files lie.
package oci
