// Package rootless runs the daemon of an ordinary user in a user, a mount and a network namespace of its own, in which it is root. The
// daemon in them is the same program as the system's.
//
// It owns the file namespaces.json in the state directory, the process that holds the namespaces (package applet) and pasta, which connects
// the network namespace with the networks of the host. Both outlive daemons, as containers do. docs/design/rootless.md describes it.
package rootless
