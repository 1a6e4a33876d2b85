// Package oci turns a container of a pod file into what an OCI runtime is told (arguments, environment, mounts, limits), and
// makes the texts of the files that a pod gives its containers (/etc/hosts, /etc/resolv.conf).
//
// The rules are the kubelet's and those of containerd's CRI plug-in, which a user of Kubernetes sees together. The package
// computes: but for a look at what the machine can do ([DetectHost]) it neither reads nor changes anything. It knows
// nothing of engines, pods' lives, or where files lie.
package oci
