package probes

import (
	"cmp"
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
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

const (
	// maxRedirects is the kubelet's limit.
	maxRedirects = 10
	// maxHeader bounds the memory for a response header, in bytes.
	maxHeader = 1 << 20
)

// Request is a request as defined in a pod file.
type Request struct {
	Scheme  string // case-insensitive, http if empty
	Host    string // a name or an address, IPv6 without brackets
	Port    int
	Path    string            // may include a query
	Headers []spec.HTTPHeader // a name may occur more than once
	// UserAgent is sent unless a header sets another one. An empty header removes it.
	UserAgent string
}

// HTTP returns the request for package net/http. An error means that the request is invalid.
func (r Request) HTTP(ctx context.Context) (*http.Request, error) {
	// A path that cannot be parsed is sent unchanged, as the kubelet does. The server decides about it.
	u, err := url.Parse(r.Path)
	if err != nil {
		u = &url.URL{Path: r.Path}
	}
	u.Scheme = strings.ToLower(cmp.Or(r.Scheme, "http"))
	u.Host = net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
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

// Dial opens a connection; see [net.Dialer.DialContext].
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// netDialer returns the dialer for probes and hooks. Its connections linger for at most one second, so that frequent probes do not
// exhaust ports.
func netDialer() *net.Dialer {
	return &net.Dialer{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1})
		}), err)
	}}
}

// Client sends requests. It keeps no state between requests and is safe for concurrent use.
type Client struct{ transport schemes }

// NewClient returns a client that connects with dial. The default is [netDialer].
func NewClient(dial Dial) *Client {
	if dial == nil {
		dial = netDialer().DialContext
	}
	return &Client{schemes{plainTransport{dial}, transport{&http.Transport{
		DialContext:            boundDial(dial),
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, // the kubelet does not verify it either
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}}}}
}

// schemes sends requests by the scheme of their URL.
type schemes struct {
	plain plainTransport
	other transport
}

// RoundTrip implements [http.RoundTripper].
func (s schemes) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && isASCII(req.URL.Host) { // the transport encodes names for DNS
		return s.plain.RoundTrip(req)
	}
	return s.other.RoundTrip(req)
}

func isASCII(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII })
}

// Response is the final response to a request.
type Response struct {
	Status int
	Body   []byte // at most the requested number of bytes
	// BodyErr is why the rest of the body could not be read.
	BodyErr error
}

// Do sends a request and reads the response, with at most max bytes of its body. The timeout, if not zero, and the request's
// context bound the whole exchange. When Do returns, its goroutines and connections are gone. An expired timeout has the error of
// [http.Client], as in events of the kubelet.
func (c *Client) Do(req *http.Request, timeout time.Duration, max int64) (Response, error) {
	ctx := req.Context()
	if timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		req = req.WithContext(limited)
	}
	expired := func() bool { return req.Context().Err() != nil && ctx.Err() == nil }
	client := http.Client{Transport: c.transport, CheckRedirect: followRedirect}
	res, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok && expired() {
			failed.Err = fmt.Errorf("%w (Client.Timeout exceeded while awaiting headers)", failed.Err)
		}
		return Response{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, max))
	if err != nil && expired() {
		err = fmt.Errorf("%w (Client.Timeout or context cancellation while reading body)", err)
	}
	return Response{Status: res.StatusCode, Body: body, BodyErr: err}, nil
}

// transport exchanges requests with that of net/http. It connects and performs the TLS handshake in a goroutine of its own,
// which continues after the request is finished. Therefore the end of an exchange ends its connection.
type transport struct{ *http.Transport }

// exchangeKey is the key of the exchange's context.
type exchangeKey struct{}

// RoundTrip implements [http.RoundTripper]. The connection is closed with the body of the response.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	until, end := context.WithCancel(context.WithoutCancel(req.Context()))
	res, err := t.Transport.RoundTrip(req.WithContext(context.WithValue(req.Context(), exchangeKey{}, until)))
	if err != nil {
		end()
		return nil, err
	}
	inner := res.Body
	res.Body = &body{Reader: inner, close: func() error {
		defer end()
		return inner.Close()
	}}
	return res, nil
}

// boundDial returns dial with connection attempt and connection bounded by the exchange.
func boundDial(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		until, _ := ctx.Value(exchangeKey{}).(context.Context)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(until, cancel)() //nolint:contextcheck // from ctx, but cancelled separately
		conn, err := dial(ctx, network, address)
		if err == nil {
			context.AfterFunc(until, func() { _ = conn.Close() }) //nolint:contextcheck // as above
		}
		return conn, err
	}
}

// followRedirect stops at a redirect to another host, which then is the response, and after too many redirects.
func followRedirect(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}
