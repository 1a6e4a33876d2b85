// Package api is the API of the daemon: HTTP and JSON over a unix socket. It has the types, with the structure that kubectl prints, all
// words that clients and the daemon agree on, and the [Client], which all commands use. Package internal/server serves it.
//
// # Clients
//
// A program that uses Podstead needs a [Client] only. The socket is /run/podstead/podstead.sock, or /run/podstead/podstead-ro.sock for a
// program that changes nothing. A client holds no resources on the daemon between two calls, and needs no reconnect: the next call
// connects to the daemon that runs then.
//
// A call that is not a stream takes at most about a minute. Streams and sessions last as long as their context.
//
// # Errors
//
// The daemon's response to a request that failed is an [*Error]. Programs read its Reason, people its Message and Hint. An error that
// wraps [ErrUnavailable] has other causes: the daemon is not running, is stopping, or the connection was lost. The call may have succeeded
// then. Use [errors.AsType] and [errors.Is], because errors can be wrapped.
//
// Later versions add fields, reasons, kinds of events and other words. Ignore those that you do not know.
//
// # Streams
//
// A stream is a response with one JSON value per line. A stream that is complete ends the response. A stream that is interrupted because
// the daemon stops closes the connection without ending the response, so that the client notices and can reconnect. The last value of the
// iterator is then an error that wraps [ErrUnavailable]. To continue:
//
//   - [Client.Output] has a position for each container: see [Positions]. No line is lost or repeated.
//   - [Client.Events] has sequence numbers: see [EventQuery.Advance]. An event of kind [EventsMissed] stands for those that are no longer kept.
//   - [Client.Watch] has no position. Call it again: it starts with all pods. Compare their UIDs with those before.
//
// # Sessions
//
// [Client.Exec], [Client.Attach] and [Client.DialPort] use a WebSocket, see package channel. A session does not survive its connection. A
// command of Exec is killed when its context ends; a container that Attach has connected to keeps running.
//
// The package makes no decisions about pods, and depends neither on the supervisor nor on a container engine.
package api
