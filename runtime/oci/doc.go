// Package oci translates a container of a pod file into an OCI runtime specification (arguments, environment, mounts, limits),
// and generates the files that a pod mounts into its containers (/etc/hosts, /etc/resolv.conf).
//
// The rules are those of the kubelet and of containerd's CRI plug-in. Except for [DetectHost] the package reads and changes
// nothing outside. It has no notion of engines, the lifecycle of pods, or file locations.
package oci
