// Package api is how everyone outside the daemon speaks with it: HTTP and JSON over a unix socket. It owns the types on the
// wire, which have the shape that kubectl prints, the [Server] in front of a supervisor, and the [Client], which is all that
// the commands use.
//
// Streams are one JSON value a line. One that ends as it should ends its response; one that is broken off, because the
// daemon leaves, breaks its connection, so that a client can tell the two apart and come back for the rest.
//
// The package decides nothing about pods and knows no container engine.
package api
