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
	// dialLimit is what the kernel has to connect two processes of one machine.
	dialLimit = 5 * time.Second
	// answerLimit is what the daemon has for a call; above [callLimit], so that it is the daemon who says what took long.
	answerLimit = callLimit + 10*time.Second
)

// Client calls a daemon over its socket. Its errors are an [*Error], or wrap [ErrUnavailable] or the context's. It is safe for
// concurrent use.
type Client struct {
	socket string
	agent  string
	http   *http.Client
}

// NewClient returns a client of the daemon at the socket. The agent is the command that calls, such as "podstead run"; the
// daemon names it where it says who asked for something.
func NewClient(socket, agent string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, agent: agent, http: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Socket is the path of the daemon's socket.
func (c *Client) Socket() string { return c.socket }

// Close ends the connections that no call uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version asks who is there.
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

// Create adds a pod. A call whose answer was lost may be repeated if it is of a session.
func (c *Client) Create(ctx context.Context, q CreateRequest) (made Created, err error) {
	return made, c.call(ctx, http.MethodPost, "/v1/pods", nil, q, &made)
}

// StopOptions say how a pod is to end.
type StopOptions struct {
	UID    string         // if set, only this pod, not another of the same name
	Grace  *time.Duration // nil: the pod's own; 0: by force
	Delete bool           // take everything of it away afterwards
}

// Stop asks a pod to end, and returns when a daemon after this one will know. It does not wait for the end. Asked again it can shorten the grace period, and add the deletion.
func (c *Client) Stop(ctx context.Context, name string, o StopOptions) error {
	q := url.Values{}
	if o.UID != "" {
		q.Set("uid", o.UID)
	}
	if o.Grace != nil {
		q.Set("grace", o.Grace.String())
	}
	if o.Delete {
		q.Set("delete", "true")
	}
	return c.call(ctx, http.MethodDelete, podPath(name), q, nil, nil)
}

// Touch is a session's sign of life. It reports whether the session has any pods.
func (c *Client) Touch(ctx context.Context, session string) (bool, error) {
	err := c.call(ctx, http.MethodPut, "/v1/sessions/"+url.PathEscape(session), nil, nil, nil)
	if e, answered := errors.AsType[*Error](err); answered && e.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// Leave asks the daemon to end and leave pods as they are. It returns when the daemon has heard it.
func (c *Client) StopDaemon(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/daemon/leave", nil, nil, nil)
}

func podPath(name string) string { return "/v1/pods/" + url.PathEscape(name) }

// call sends a request with in as its body, if that is not nil, and decodes the answer to out, if that is not nil.
func (c *Client) call(ctx context.Context, method, path string, q url.Values, in, out any) error {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	r, err := c.do(limited, method, path, q, in)
	if err != nil {
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return readError(r)
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

// unavailable classifies an error of the connection.
func (c *Client) unavailable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, wrapped := errors.AsType[*url.Error](err); wrapped {
		err = u.Err // without the URL, which says nothing to a person
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
