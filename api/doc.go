// Package api is the API of the daemon: HTTP and JSON over a unix socket. It has the types, with the structure that kubectl prints, the
// [Server], which serves the API of a supervisor, and the [Client], which all commands use.
//
// A stream is a response with one JSON value per line. A stream that is complete ends the response. A stream that is interrupted because
// the daemon stops closes the connection without ending the response, so that the client notices and can reconnect.
//
// The package makes no decisions about pods and does not depend on a container engine.
package api
