// Package client is the client of the daemon's API, which all commands use. Package api has the types and the words of the API.
//
// A program that uses Podstead needs a [Client] only. The socket is /run/podstead/podstead.sock, or /run/podstead/podstead-ro.sock for a
// program that changes nothing. A client holds no resources on the daemon between two calls, and needs no reconnect: the next call
// connects to the daemon that runs then.
//
// A call that is not a stream takes at most about a minute. Streams and sessions last as long as their context.
//
// # Errors
//
// The daemon's response to a request that failed is an [*api.Error]. Programs read its Reason, people its Message and Hint. An error that
// wraps [api.ErrUnavailable] has other causes: the daemon is not running, is stopping, or the connection was lost. The call may have
// succeeded then. Use [errors.AsType] and [errors.Is], because errors can be wrapped.
//
// # Streams
//
// When a stream is interrupted, the last value of the iterator is an error that wraps [api.ErrUnavailable]. To continue:
//
//   - [Client.Output] has a position for each container: see [api.Positions]. No line is lost or repeated.
//   - [Client.Events] has sequence numbers: see [EventQuery.Advance]. An event of kind [api.EventsMissed] stands for those that are no
//     longer kept.
//   - [Client.Watch] has no position. Call it again: it starts with all pods. Compare their UIDs with those before.
//
// # Sessions
//
// [Client.Exec], [Client.Attach] and [Client.DialPort] use a WebSocket, see package channel. A session does not survive its connection. A
// command of Exec is killed when its context ends; a container that Attach has connected to keeps running.
//
// The package makes no decisions about pods, and starts no daemon.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/api"
)

const (
	// dialTimeout bounds the connection to the socket.
	dialTimeout = 5 * time.Second
	// callTimeout bounds a call. It is longer than [api.CallTimeout], so that the daemon reports which operation timed out.
	callTimeout = api.CallTimeout + 10*time.Second
	// removalTimeout is the same for [api.RemovalTimeout].
	removalTimeout = api.RemovalTimeout + 10*time.Second
	// loginTimeout is the same for [api.LoginTimeout].
	loginTimeout = api.LoginTimeout + 10*time.Second
)

// Client sends requests to the daemon over its socket. Its errors are an [*api.Error], or wrap [api.ErrUnavailable] or the error of the
// context. It is safe for concurrent use.
type Client struct {
	socket string
	agent  string
	http   *http.Client
	before func(context.Context) error
}

// New returns a client for the daemon at the socket. The agent is the calling command, such as "podstead run". The daemon reports it as
// the requester in events.
func New(socket, agent string) *Client {
	c := &Client{socket: socket, agent: agent}
	c.http = &http.Client{Transport: &http.Transport{DialContext: c.dial}}
	return c
}

// BeforeConnect sets a function that is called before each connection. With an error of it, the client does not connect: a call fails as if
// the daemon were not running. It must be set before the first call.
func (c *Client) BeforeConnect(check func(context.Context) error) { c.before = check }

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if c.before != nil {
		if err := c.before(ctx); err != nil {
			return nil, err
		}
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", c.socket)
}

// Socket returns the path of the daemon's socket.
func (c *Client) Socket() string { return c.socket }

// Close closes idle connections. Calls in progress are not affected.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version returns the version of the daemon.
func (c *Client) Version(ctx context.Context) (v api.Version, err error) {
	return v, c.call(ctx, http.MethodGet, "/v1/version", nil, nil, &v)
}

// Stopped returns an [*api.StoppedError] if the daemon that ran last was stopped on request and no other one has started, and nil
// otherwise.
func (c *Client) Stopped() error { return api.ReadStopRecord(c.socket) }

// call sends a request with the body in and decodes the response into out. Both may be nil.
func (c *Client) call(ctx context.Context, method, path string, q url.Values, in, out any) error {
	return c.callWithin(ctx, callTimeout, method, path, q, in, out)
}

func (c *Client) callWithin(ctx context.Context, limit time.Duration, method, path string, q url.Values, in, out any) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := c.do(limited, method, path, q, in)
	if err != nil {
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, r.Body)
	} else {
		err = json.NewDecoder(r.Body).Decode(out)
	}
	return c.unavailable(ctx, err)
}

// stream sends a request and yields the JSON values of the response. An error is the last value. The function onHeader, if it is not nil,
// is called with the header of the response.
func stream[T any](
	ctx context.Context, c *Client, method, path string, q url.Values, in any, onHeader func(http.Header),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r, err := c.do(ctx, method, path, q, in)
		if err != nil {
			yield(none, c.unavailable(ctx, err))
			return
		}
		defer r.Body.Close()
		if onHeader != nil {
			onHeader(r.Header)
		}
		for lines := json.NewDecoder(r.Body); ; {
			var v T
			err := lines.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(none, c.unavailable(ctx, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// upload sends a tar stream and decodes the response into out. It may return before the end of the stream.
func (c *Client) upload(ctx context.Context, method, path string, q url.Values, stream io.Reader, out any) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := &source{r: stream}
	r, err := c.send(ctx, method, path, q, api.TarContent, body)
	if err != nil {
		if _, refused := errors.AsType[*api.Error](err); !refused && body.failed() != nil {
			return body.failed()
		}
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	return c.unavailable(ctx, json.NewDecoder(r.Body).Decode(out))
}

// do sends a request with the body in, which may be nil.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, in any) (*http.Response, error) {
	if in == nil {
		return c.send(ctx, method, path, q, "", nil)
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, method, path, q, "application/json", bytes.NewReader(text))
}

// send sends a request. If the response is not a success, the error is an [*api.Error].
func (c *Client) send(ctx context.Context, method, path string, q url.Values, content string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address(path, q), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", c.agent)
	if content != "" {
		request.Header.Set("Content-Type", content)
	}
	r, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if r.StatusCode >= http.StatusMultipleChoices {
		defer r.Body.Close()
		return nil, c.readError(ctx, r)
	}
	return r, nil
}

// address returns the URL of a request. The host is ignored.
func address(path string, q url.Values) string {
	u := url.URL{Scheme: "http", Host: "podstead", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// readError returns the error of a response that is not a success.
func (c *Client) readError(ctx context.Context, r *http.Response) *api.Error {
	e := &api.Error{}
	if err := json.NewDecoder(r.Body).Decode(e); err != nil || e.Message == "" {
		e.Message = "unexpected response from the daemon: " + r.Status
	}
	e.Status = r.StatusCode
	for _, unknown := range []string{api.UnknownEndpoint, api.UnknownParameter} {
		if request, found := strings.CutPrefix(e.Message, unknown); found {
			return c.otherVersion(ctx, strings.TrimPrefix(unknown, "unknown ")+request)
		}
	}
	return e
}

// otherVersion explains that the daemon does not know a request of this client: it is older, and runs on after an upgrade.
func (c *Client) otherVersion(ctx context.Context, unknown string) *api.Error {
	daemon := "the daemon"
	if v, err := c.Version(ctx); err == nil {
		daemon += ", version " + v.Version + ","
	}
	return &api.Error{
		Status: http.StatusNotImplemented, Reason: api.ReasonNotImplemented,
		Message: daemon + " is older than this command: it does not know the " + unknown,
		Hint:    "run systemctl restart podstead, or podstead daemon stop and the command again: pods keep running",
	}
}

// unavailable wraps an error of the connection in [api.ErrUnavailable], unless the context is done. The response of the daemon is
// unchanged.
func (c *Client) unavailable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*api.Error](err); ok {
		return refused
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, wrapped := errors.AsType[*url.Error](err); wrapped {
		err = u.Err // the URL is not that of a server, but of a socket
	}
	return fmt.Errorf("%w: %w", api.ErrUnavailable, err)
}

// source remembers the error of a reader, to distinguish it from that of the other side.
type source struct {
	r   io.Reader
	err atomic.Pointer[error]
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err.Store(&err)
	}
	return n, err
}

func (s *source) failed() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// query returns the parameters of a request, names and values in turn. Those without a value are left out.
func query(parameters ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			q.Set(parameters[i], parameters[i+1])
		}
	}
	return q
}

// flag returns the value of a parameter that is left out if it is false.
func flag(set bool) string {
	if set {
		return "true"
	}
	return ""
}

// timestamp returns the value of a parameter that is left out if the time is zero.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func podPath(name string) string { return "/v1/pods/" + url.PathEscape(name) }
