// Package quadlet converts units of Quadlet, the systemd generator of Podman, to pods: containers, pods, volumes, networks, images and
// Kubernetes files, with their drop-ins.
//
// Each key has a row in a table (keys.go), which says whether it is taken, ignored with a warning, lost or refused. The reference page is
// made from the table. Only clients use this package: the daemon reads pod files. It reads the units that the caller names, their drop-ins
// and the Kubernetes files of .kube units, and it starts nothing.
package quadlet
