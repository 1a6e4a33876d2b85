// Package connect joins what a user has on this side with a running pod: a terminal with a process (raw mode, which is always undone, the
// size, signals and detach keys), a local port with a port of the pod (podstead port-forward), files with files of a container (podstead
// cp). For a container without tools, it adds a debugger to the pod (podstead debug).
//
// It knows nothing about what runs in a session. It trusts nothing in an archive from a container: package tartree follows no links below
// the destination.
package connect
