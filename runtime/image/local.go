package image

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
)

// localGuard keeps registries from using the daemon to reach services that listen on loopback or link-local addresses of the host, by a
// redirect, by the realm of an authentication, or by changing what their name resolves to. Registries that are on such addresses
// themselves, also by the DNS (see nameGuard), may be reached, and may refer to addresses of the same kind. So may proxies.
type localGuard struct {
	mu sync.Mutex
	// kinds are the kinds of addresses that the registry of the image is on.
	kinds []addressKind
	// known are the host:port of mirrors and proxies on such addresses.
	known map[string]bool
	// names are the registries of the image that are known by the DNS.
	names nameGuard
}

// addressKind is a kind of addresses that only this host, or its link, can reach; empty: any other.
type addressKind string

const (
	loopback  addressKind = "loopback"
	linkLocal addressKind = "link-local"
)

func kindOf(ip netip.Addr) addressKind {
	switch ip = ip.Unmap(); {
	case ip.IsLoopback(), ip.IsUnspecified():
		return loopback
	case ip.IsLinkLocalUnicast():
		return linkLocal
	}
	return ""
}

// dialTimeout bounds a connection to a registry, and the lookup of its name.
const dialTimeout = 30 * time.Second

// hostsFile has the names that the administrator has given to addresses.
const hostsFile = "/etc/hosts"

// kindOfHost returns the kind of a host by its address, or by its name in the hosts file. It does not use the DNS: the owner of a name can
// change the answers at any time.
func kindOfHost(host, hosts string) addressKind {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return kindOf(ip)
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return loopback
	}
	text, _ := os.ReadFile(hosts) // without the file, it has no names
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(strings.ToLower(line))
		if len(fields) < 2 || !slices.Contains(fields[1:], host) {
			continue
		}
		if ip, err := netip.ParseAddr(fields[0]); err == nil {
			return kindOf(ip)
		}
	}
	return ""
}

// hosts returns the registry hosts of a configuration, and learns which of them are on the addresses of this host.
func (g *localGuard) hosts(configured docker.RegistryHosts) docker.RegistryHosts {
	return func(host string) ([]docker.RegistryHost, error) {
		list, err := configured(host)
		g.mu.Lock()
		defer g.mu.Unlock()
		if kind := kindOfHost(hostOf(host), hostsFile); kind != "" {
			g.kinds = append(g.kinds, kind)
		} else {
			g.names.add(hostOf(host))
		}
		for _, h := range list {
			if kindOfHost(hostOf(h.Host), hostsFile) != "" {
				g.learn(&url.URL{Scheme: h.Scheme, Host: h.Host})
			}
		}
		return list, err
	}
}

// learn allows connections to the host and the port of a URL. The caller holds the lock.
func (g *localGuard) learn(u *url.URL) {
	if g.known == nil {
		g.known = map[string]bool{}
	}
	g.known[withPort(u)] = true
}

// hostOf returns the host of host:port.
func hostOf(address string) string { return (&url.URL{Host: address}).Hostname() }

// withPort returns the host and the port of a URL.
func withPort(u *url.URL) string {
	ports := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), ports[u.Scheme]))
}

// protect checks each connection of a client before it is made.
func (g *localGuard) protect(update config.UpdateClientFunc) config.UpdateClientFunc {
	return func(c *http.Client) error {
		if t, ok := c.Transport.(*http.Transport); ok {
			g.protectTransport(t)
		}
		return update(c)
	}
}

func (g *localGuard) protectTransport(t *http.Transport) {
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second} // as containerd's
		fixed, err := g.names.fixed(ctx, address)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		if len(fixed) > 0 {
			return dialAny(ctx, &d, network, fixed)
		}
		if !g.isKnown(address) {
			d.Control = func(_, resolved string, _ syscall.RawConn) error {
				ip, err := netip.ParseAddrPort(resolved)
				if err != nil {
					return err
				}
				return g.check(kindOf(ip.Addr()), ip.Addr().String())
			}
		}
		return d.DialContext(ctx, network, address)
	}
	if t.Proxy == nil {
		return
	}
	proxyOf := t.Proxy
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		proxy, err := proxyOf(r)
		if proxy == nil || err != nil {
			return proxy, err
		}
		g.mu.Lock()
		g.learn(proxy)
		g.mu.Unlock()
		return proxy, g.check(kindOfHost(r.URL.Hostname(), hostsFile), r.URL.Hostname())
	}
}

func (g *localGuard) isKnown(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[address]
}

// check returns an error for an address that the registry must not refer to.
func (g *localGuard) check(kind addressKind, address string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if kind == "" || slices.Contains(g.kinds, kind) || g.names.on(kind) {
		return nil
	}
	return fmt.Errorf("refused: %s is a %s address of the host, and the registry is not", address, kind)
}
