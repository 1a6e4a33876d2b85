package image

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containerd/containerd/v2/core/remotes/docker"
)

func TestKindOfHost(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts,
		[]byte("127.0.1.1 myhost registry.local # a comment with other.local\n169.254.1.1\tlink\n10.0.0.1 lan\nbad\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]addressKind{
		"127.0.0.1": loopback, "127.255.0.9": loopback, "::1": loopback, "[::1]": loopback, "0.0.0.0": loopback, "::": loopback,
		"::ffff:127.0.0.1": loopback,
		"localhost":        loopback, "LOCALHOST.": loopback, "x.localhost": loopback, "registry.local": loopback,
		"Registry.Local":  loopback,
		"169.254.169.254": linkLocal, "fe80::1": linkLocal, "::ffff:169.254.169.254": linkLocal, "link": linkLocal,
		"10.0.0.1": "", "lan": "", "other.local": "", "docker.io": "", "2001:db8::1": "", "": "",
	} {
		if got := kindOfHost(host, hosts); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

// guarded returns a client as for an image of a registry, and what it may reach. A proxy is used for every request if it is not empty.
func guarded(t *testing.T, registry, proxy string) *http.Client {
	t.Helper()
	transport := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) {
		if proxy == "" {
			return nil, nil
		}
		return url.Parse(proxy)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	var g localGuard
	if err := g.protect(func(*http.Client) error { return nil })(c); err != nil {
		t.Fatal(err)
	}
	configured := func(host string) ([]docker.RegistryHost, error) {
		return []docker.RegistryHost{{Host: host, Scheme: "http"}}, nil
	}
	if _, err := g.hosts(configured)(registry); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLocalServicesAreNotReached checks requests to a service on the loopback, for images of several registries.
func TestLocalServicesAreNotReached(t *testing.T) {
	var reached atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		_, _ = io.WriteString(w, "secret")
	}))
	defer service.Close()
	port := netip.MustParseAddrPort(service.Listener.Addr().String()).Port()
	named := "http://" + net.JoinHostPort("localhost", strings.TrimPrefix(service.URL, "http://127.0.0.1:"))
	// The proxy plays the registry: it redirects all requests to the service.
	proxy := httptest.NewServer(http.RedirectHandler(service.URL, http.StatusTemporaryRedirect))
	defer proxy.Close()
	own := service.Listener.Addr().String()
	for _, test := range []struct {
		name, registry, proxy, url string
		allowed                    bool
	}{
		{"address", "registry.example", "", service.URL, false},
		{"name that resolves to the loopback", "registry.example", "", named, false},
		{"mapped address", "registry.example", "", strings.Replace(service.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1), false},
		{"service of the link", own, "", "http://169.254.0.9/latest", false},
		{"redirect behind a proxy", "registry.example", proxy.URL, "http://registry.example/v2/", false},
		{"the registry itself", own, "", service.URL, true},
		{"another service of the registry's host", "127.0.0.1:1", "", service.URL, true},
	} {
		before := reached.Load()
		q, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, test.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := guarded(t, test.registry, test.proxy).Do(q)
		if err == nil {
			_ = res.Body.Close()
		}
		if allowed := err == nil; allowed != test.allowed || !allowed && !strings.Contains(err.Error(), "refused: ") ||
			(reached.Load() > before) != test.allowed {
			t.Errorf("%s (port %d): %v, %d requests", test.name, port, err, reached.Load()-before)
		}
	}
}
