package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// dialTimeout bounds the connection to the socket.
	dialTimeout = 5 * time.Second
	// clientTimeout bounds a call. It is longer than [CallTimeout], so that the daemon reports which operation timed out.
	clientTimeout = CallTimeout + 10*time.Second
	// clientRemovalTimeout is the same for [RemovalTimeout].
	clientRemovalTimeout = RemovalTimeout + 10*time.Second
	// clientLoginTimeout is the same for [LoginTimeout].
	clientLoginTimeout = LoginTimeout + 10*time.Second
)

// Client sends requests to the daemon over its socket. Its errors are an [*Error], or wrap [ErrUnavailable] or the error of the context.
// It is safe for concurrent use.
type Client struct {
	socket string
	agent  string
	http   *http.Client
	before func(context.Context) error
}

// NewClient returns a client for the daemon at the socket. The agent is the calling command, such as "podstead run". The daemon reports it
// as the requester in events.
func NewClient(socket, agent string) *Client {
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
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	return v, c.call(ctx, http.MethodGet, "/v1/version", nil, nil, &v)
}

// Pods lists all pods, sorted by name.
func (c *Client) Pods(ctx context.Context) (list PodList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/pods", nil, nil, &list)
}

// Pod returns one pod.
func (c *Client) Pod(ctx context.Context, name string) (p Pod, err error) {
	return p, c.call(ctx, http.MethodGet, podPath(name), nil, nil, &p)
}

// PodWithUID returns the pod with a UID. After the pod was deleted, it returns the final state, until the session that created the pod
// ends.
func (c *Client) PodWithUID(ctx context.Context, name, uid string) (p Pod, err error) {
	return p, c.call(ctx, http.MethodGet, podPath(name), url.Values{"uid": {uid}}, nil, &p)
}

// Create creates a pod. With a session it is idempotent: a call whose response was lost can be repeated.
func (c *Client) Create(ctx context.Context, q CreateRequest) (created Created, err error) {
	return created, c.call(ctx, http.MethodPost, "/v1/pods", nil, q, &created)
}

// Touch sends a heartbeat of a session. It reports whether the session exists.
func (c *Client) Touch(ctx context.Context, session string) (bool, error) {
	err := c.call(ctx, http.MethodPut, "/v1/sessions/"+url.PathEscape(session), nil, nil, nil)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// EndSession reports that the client needs no final states of deleted pods any more. The pods of the session are not affected.
func (c *Client) EndSession(ctx context.Context, session string) error {
	return c.call(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(session), nil, nil, nil)
}

// StopDaemon requests the stop of the daemon; containers keep running. It does not wait until the daemon has exited.
func (c *Client) StopDaemon(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/daemon/leave", nil, nil, nil)
}

// ShutDownDaemon requests the stop of the daemon like [Client.StopDaemon], but all pods stop first, as at a shutdown of the host. When the
// daemon has exited, [Client.Stopped] returns how many pods have not stopped.
func (c *Client) ShutDownDaemon(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/daemon/leave", url.Values{"shutdown": {"true"}}, nil, nil)
}

func podPath(name string) string { return "/v1/pods/" + url.PathEscape(name) }

// call sends a request with the body in and decodes the response into out. Both may be nil.
func (c *Client) call(ctx context.Context, method, path string, q url.Values, in, out any) error {
	return c.callWithin(ctx, clientTimeout, method, path, q, in, out)
}

func (c *Client) callWithin(ctx context.Context, limit time.Duration, method, path string, q url.Values, in, out any) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := c.do(limited, method, path, q, in)
	if err != nil {
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return c.readError(ctx, r)
	}
	if out == nil {
		_, err = io.Copy(io.Discard, r.Body)
	} else {
		err = json.NewDecoder(r.Body).Decode(out)
	}
	return c.unavailable(ctx, err)
}

func (c *Client) do(ctx context.Context, method, path string, q url.Values, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	u := url.URL{Scheme: "http", Host: "podstead", Path: path, RawQuery: q.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", c.agent)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(r)
}

// unavailable wraps an error of the connection in [ErrUnavailable], unless the context is done.
func (c *Client) unavailable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, wrapped := errors.AsType[*url.Error](err); wrapped {
		err = u.Err // the URL is not that of a server, but of a socket
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
