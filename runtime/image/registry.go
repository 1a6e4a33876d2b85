package image

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
)

// resolver resolves images by containerd's hosts.toml convention. A registry on a loopback address may use plain HTTP. release
// closes its idle connections.
func (s *Store) resolver(ctx context.Context) (r remotes.Resolver, release func()) {
	var clients []*http.Client
	opts := config.HostOptions{UpdateClient: func(c *http.Client) error {
		t, ok := c.Transport.(*http.Transport)
		if !ok {
			return errors.New("registry client has no http.Transport")
		}
		limit(t, s.opts.StallTimeout)
		clients = append(clients, c)
		return nil
	}}
	if s.opts.CertsDir != "" {
		opts.HostDir = config.HostDirFromRoot(s.opts.CertsDir)
	}
	r = docker.NewResolver(docker.ResolverOptions{Hosts: config.ConfigureHosts(ctx, opts)})
	return r, func() {
		for _, c := range clients {
			c.CloseIdleConnections()
		}
	}
}

// limit bounds how long t waits for the next byte in every phase of a request. The limit is per connection and not for the whole
// pull, so that a hanging mirror is given up for the next host.
func limit(t *http.Transport, stall time.Duration) {
	t.TLSHandshakeTimeout = min(t.TLSHandshakeTimeout, stall)
	t.ResponseHeaderTimeout = stall
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, stall)
		defer cancel()
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &stallConn{Conn: c, stall: stall}, nil
	}
}

// stallConn is a connection whose reads fail if no data arrives for the stall timeout. Slow data is not a stall.
type stallConn struct {
	net.Conn
	stall time.Duration
}

func (c *stallConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write restarts the timeout. The transport reads an idle connection ahead of the next request, whose response must not be
// charged with the idle time.
func (c *stallConn) Write(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
