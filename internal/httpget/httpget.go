// Package httpget sends GET requests into pods as the kubelet sends those of probes and lifecycle hooks.
//
// It owns how such a request looks and how the connection for it is made: one connection for each request, closed with
// it; no proxy, no compression, no check of certificates; redirects followed on the first request's host only. It does
// not judge what comes back.
package httpget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxRedirects is what the kubelet follows.
	maxRedirects = 10
	// maxHeader bounds what a server can make the client keep in memory, in bytes.
	maxHeader = 1 << 20
)

// Header is one header line. A name may come more than once.
type Header struct{ Name, Value string }

// Request is a request as a pod file describes it.
type Request struct {
	Scheme  string // in any case; empty for http
	Host    string // a name or an address, an IPv6 one without brackets
	Port    int
	Path    string // with a query, if it has one
	Headers []Header
	// UserAgent is sent unless a header says another one, or an empty one for none.
	UserAgent string
}

// HTTP returns the request for package net/http. Its errors are about the request itself: nothing was sent.
func (r Request) HTTP(ctx context.Context) (*http.Request, error) {
	// What cannot be parsed is passed as it is, as the kubelet does: whether it means anything is the server's affair.
	u, err := url.Parse(r.Path)
	if err != nil {
		u = &url.URL{Path: r.Path}
	}
	u.Scheme = "http"
	if r.Scheme != "" {
		u.Scheme = strings.ToLower(r.Scheme)
	}
	u.Host = net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for _, h := range r.Headers {
		req.Header.Add(h.Name, h.Value)
	}
	req.Host = req.Header.Get("Host")
	if _, given := req.Header["User-Agent"]; !given {
		req.Header.Set("User-Agent", r.UserAgent)
	}
	switch accept, given := req.Header["Accept"]; {
	case !given:
		req.Header.Set("Accept", "*/*")
	case accept[0] == "":
		req.Header.Del("Accept")
	}
	return req, nil
}

// Dial makes a connection; see [net.Dialer.DialContext].
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer makes the connections of probes and hooks. None lingers for longer than a second after its end, so that
// frequent ones do not use up the ports.
func Dialer() *net.Dialer {
	return &net.Dialer{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1})
		}), err)
	}}
}

// Client sends requests. It keeps nothing from one to the next, and is safe for concurrent use.
type Client struct{ transport *http.Transport }

// New returns a client whose connections dial makes; nil is [Dialer].
func New(dial Dial) *Client {
	if dial == nil {
		dial = Dialer().DialContext
	}
	return &Client{&http.Transport{
		DialContext:            bound(dial),
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, // the container's certificate is for others
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}}
}

// Answer is the last answer to a request.
type Answer struct {
	Status int
	Body   []byte // as much as was asked for
	// BodyErr is why the rest of the body could not be read.
	BodyErr error
}

// Do sends a request and reads the answer, up to max bytes of its body. The timeout, if it is not zero, is for the whole
// exchange, as the request's context is. When Do returns, nothing of the exchange is left.
func (c *Client) Do(req *http.Request, timeout time.Duration, max int64) (Answer, error) {
	until, end := context.WithCancel(context.WithoutCancel(req.Context()))
	defer end()
	client := http.Client{Transport: c.transport, CheckRedirect: follow, Timeout: timeout}
	res, err := client.Do(req.WithContext(context.WithValue(req.Context(), exchange{}, until)))
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, max))
	return Answer{Status: res.StatusCode, Body: body, BodyErr: err}, nil
}

// exchange is the key of the context that ends with an exchange. A transport connects, and agrees on encryption, beside
// the request that it is for, and goes on with both when the request has ended.
type exchange struct{}

// bound returns dial with the end of the exchange as the end of the attempt and of the connection.
func bound(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		until, _ := ctx.Value(exchange{}).(context.Context)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(until, cancel)() //nolint:contextcheck // it came with ctx, and ends at another time
		conn, err := dial(ctx, network, address)
		if err == nil {
			context.AfterFunc(until, func() { _ = conn.Close() }) //nolint:contextcheck // as above
		}
		return conn, err
	}
}

// follow stops at a redirect to another host, whose answer is then the redirect itself, and after too many.
func follow(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}
