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

// resolver finds images as containerd's hosts.toml convention says; one on a
// loopback address may speak plain HTTP. release closes its idle connections.
func (s *Store) resolver(ctx context.Context) (r remotes.Resolver, release func()) {
	var clients []*http.Client
	opts := config.HostOptions{UpdateClient: func(c *http.Client) error {
		t, ok := c.Transport.(*http.Transport)
		if !ok {
			return errors.New("registry client has no transport of its own")
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

// limit bounds how long t waits for the next byte in every phase of a request.
// The limit is on the connection and not on the whole pull, so that a mirror
// that hangs gives way to the next host.
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
		return &impatientConn{Conn: c, stall: stall}, nil
	}
}

// impatientConn is a connection whose reads fail when nothing comes for too
// long. Bytes that come slowly are no stall.
type impatientConn struct {
	net.Conn
	stall time.Duration
}

func (c *impatientConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write begins the wait anew: the transport reads an idle connection ahead of
// the next request, whose answer must not be charged with the idle time.
func (c *impatientConn) Write(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
