// Package api is the API of the daemon: HTTP and JSON over a unix socket. It has the types, with the structure that kubectl prints, their
// encoding, and all words that clients and the daemon agree on. Package client sends requests, and package internal/server serves them.
//
// The daemon's response to a request that failed is an [*Error]. Programs read its Reason, people its Message and Hint.
//
// A stream is a response with one JSON value per line. A stream that is complete ends the response. A stream that is interrupted because
// the daemon stops closes the connection without ending the response, so that the client notices and can reconnect.
//
// Later versions add fields, reasons, kinds of events and other words. Ignore those that you do not know.
//
// The package makes no decisions about pods, and depends neither on the supervisor nor on a container engine.
package api
