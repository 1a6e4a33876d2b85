package image

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"

	"github.com/podstead/podstead/runtime/image/credentials"
)

// resolver resolves images by containerd's hosts.toml convention, with credentials for the registry of the image. A registry on a loopback
// address may use plain HTTP. release closes its idle connections.
func (s *Store) resolver(ctx context.Context, a *access, login credentials.Login) (r remotes.Resolver, release func()) {
	hosts, release := s.hosts(ctx, a, a.credentialsFor(ctx, login))
	return docker.NewResolver(docker.ResolverOptions{Hosts: hosts}), release
}

// hosts returns the configured hosts of registries. release closes their idle connections.
func (s *Store) hosts(
	ctx context.Context, a *access, login func(host string) (string, string, error),
) (hosts docker.RegistryHosts, release func()) {
	var clients []*http.Client
	opts := config.HostOptions{Credentials: login, UpdateClient: func(c *http.Client) error {
		if _, done := c.Transport.(documents); done { // the client of another host with the same settings
			return nil
		}
		t := c.Transport.(*http.Transport) // containerd makes no other: one without limits must not be used
		limit(t, pace{stall: s.opts.StallTimeout, window: s.opts.RateWindow, meter: a.meter, bandwidth: &s.bandwidth})
		c.Transport = documents{t, &s.quotas, a}
		clients = append(clients, c)
		return nil
	}}
	if s.opts.CertsDir != "" {
		opts.HostDir = config.HostDirFromRoot(s.opts.CertsDir)
	}
	var guard localGuard
	opts.UpdateClient = guard.protect(opts.UpdateClient)
	return a.learnServer(guard.hosts(config.ConfigureHosts(ctx, opts))), func() {
		for _, c := range clients {
			c.CloseIdleConnections()
		}
	}
}

// pace is how fast a registry must be.
type pace struct {
	stall     time.Duration // within which a byte must arrive
	window    time.Duration // within which minRate must be reached
	meter     *meter        // counts what arrives
	bandwidth *bandwidth
}

// minRate is the least mean rate of a connection, in bytes per second.
const minRate = 1 << 10

// limit bounds how long t waits for the next byte in every phase of a request. The limit is per connection and not for the whole
// pull, so that a hanging mirror is given up for the next host.
func limit(t *http.Transport, p pace) {
	t.TLSHandshakeTimeout = min(t.TLSHandshakeTimeout, p.stall)
	t.ResponseHeaderTimeout = p.stall
	t.MaxResponseHeaderBytes = maxHeader
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, p.stall)
		defer cancel()
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		closed, stop := context.WithCancel(context.WithoutCancel(ctx))
		return &pacedConn{Conn: c, pace: p, closed: closed, stop: stop}, nil
	}
}

// pacedConn is a connection whose reads fail if no data arrives for the stall timeout, or too little data in the window. Only the time
// counts in which a reader waits for data. What was read waits for the bandwidth limit.
type pacedConn struct {
	net.Conn
	pace

	closed context.Context //nolint:containedctx // canceled by Close, which ends the wait for the bandwidth limit
	stop   context.CancelFunc

	mu     sync.Mutex
	waited time.Duration
	got    int64
}

// Close closes the connection.
func (c *pacedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

func (c *pacedConn) Read(b []byte) (int, error) {
	n, err := c.read(c.bandwidth.Part(b))
	if werr := c.bandwidth.Wait(c.closed, n); werr != nil && err == nil {
		err = net.ErrClosed
	}
	return n, err
}

func (c *pacedConn) read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	start := time.Now()
	n, err := c.Conn.Read(b)
	c.meter.add(int64(n))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waited, c.got = c.waited+time.Since(start), c.got+int64(n)
	if err == nil && c.waited >= c.window {
		if c.got < int64(c.window.Seconds()*minRate) {
			return 0, fmt.Errorf("registry is too slow: %d bytes in %v, want at least %d bytes per second",
				c.got, c.waited.Round(time.Second), minRate)
		}
		c.waited, c.got = 0, 0
	}
	return n, err
}

// Write restarts the timeout. The transport reads an idle connection ahead of the next request, whose response must not be
// charged with the idle time.
func (c *pacedConn) Write(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	c.mu.Lock()
	c.waited, c.got = 0, 0
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// maxHeader bounds the header of a response.
const maxHeader = 1 << 20

// documents bounds the bodies of all responses but blobs, whose descriptors have a size, also where a registry redirects to them.
// containerd decodes tokens of any size, and reads manifests of any size to compute their digest. It also waits while a registry wants no
// requests.
type documents struct {
	*http.Transport

	quotas *quotas
	access *access
}

// maxQuotaRetries is how often a request is repeated that a registry has delayed.
const maxQuotaRetries = 2

// RoundTrip sends a request when the registry accepts it. A request with a body, which asks for a token, is not repeated.
func (d documents) RoundTrip(r *http.Request) (*http.Response, error) {
	for retries := 0; ; retries++ {
		if err := d.quotas.Wait(r.Context(), r.URL.Host); err != nil {
			return nil, err
		}
		resp, err := d.roundTrip(r)
		d.access.sent(r, resp)
		if err != nil || !d.quotas.Note(r.URL.Host, resp) || retries == maxQuotaRetries || r.Body != nil {
			return resp, err
		}
		if err := resp.Body.Close(); err != nil {
			return nil, err
		}
	}
}

func (d documents) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.Transport.RoundTrip(r)
	first := r
	for first.Response != nil { // the redirect that caused the request
		first = first.Response.Request
	}
	if err == nil && (resp.StatusCode >= http.StatusBadRequest || !strings.Contains(first.URL.Path, "/blobs/")) {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxDocument}
	}
	return resp, err
}

// limitedBody is a body that fails when it exceeds its limit.
type limitedBody struct {
	io.ReadCloser

	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, exceeds("response of the registry has more than %d bytes", maxDocument)
	}
	return n, err
}
