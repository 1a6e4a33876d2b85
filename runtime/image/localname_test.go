package image

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/remotes/docker"
)

// TestRegistryNamedByTheDNS checks connections for an image of a registry whose name the DNS resolves. The answers are one for each lookup;
// further lookups get the last one. Each request is to the registry or, as after a redirect, to the loopback.
func TestRegistryNamedByTheDNS(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer service.Close()
	port := strings.TrimPrefix(service.URL, "http://127.0.0.1")
	const registry, redirected = "registry.example", "127.0.0.1"
	for name, test := range map[string]struct {
		answers  []string // addresses separated by spaces; empty: an error
		requests []string
		allowed  []bool
	}{
		"on the loopback": {
			[]string{"127.0.0.1"}, []string{registry, redirected, "REGISTRY.example"}, []bool{true, true, true},
		},
		"redirect before a connection":  {[]string{"127.0.0.1"}, []string{redirected, registry}, []bool{false, true}},
		"elsewhere":                     {[]string{"192.0.2.1"}, []string{redirected}, []bool{false}},
		"on the loopback and elsewhere": {[]string{"127.0.0.1 192.0.2.1"}, []string{registry, redirected}, []bool{false, false}},
		"moves to the loopback": {
			[]string{"192.0.2.1", "127.0.0.1"}, []string{registry, registry, redirected}, []bool{false, false, false},
		},
		"moves away, to refer to it":     {[]string{"127.0.0.1", "192.0.2.1"}, []string{registry, registry}, []bool{true, true}},
		"link-local, refers to loopback": {[]string{"169.254.1.1"}, []string{redirected}, []bool{false}},
		"cannot be resolved":             {[]string{""}, []string{registry, redirected}, []bool{false, false}},
		"cannot be resolved at first": {
			[]string{"", "192.0.2.1", "127.0.0.1"}, []string{registry, registry, registry, redirected}, []bool{false, false, false, false},
		},
		"another name that is not trusted": {
			[]string{"127.0.0.1"}, []string{registry + ".other.example", redirected}, []bool{false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var g localGuard
			g.names.lookup = func(context.Context, string) ([]netip.Addr, error) {
				answer := test.answers[0]
				if len(test.answers) > 1 {
					test.answers = test.answers[1:]
				}
				if answer == "" {
					return nil, errors.New("no such host")
				}
				var list []netip.Addr
				for text := range strings.FieldsSeq(answer) {
					list = append(list, netip.MustParseAddr(text))
				}
				return list, nil
			}
			transport := &http.Transport{DisableKeepAlives: true} // a connection for each request
			g.protectTransport(transport)
			configured := func(host string) ([]docker.RegistryHost, error) {
				return []docker.RegistryHost{{Host: host, Scheme: "http"}}, nil
			}
			if _, err := g.hosts(configured)(registry + port); err != nil {
				t.Fatal(err)
			}
			for i, host := range test.requests {
				conn, err := transport.DialContext(t.Context(), "tcp", host+port)
				if err == nil {
					_ = conn.Close()
				}
				if (err == nil) != test.allowed[i] {
					t.Errorf("connection %d, to %s: %v, want allowed: %t", i+1, host, err, test.allowed[i])
				}
			}
		})
	}
}

// TestRegistryThatCannotBeResolved has a name that the guard cannot resolve and the dialer can. The owner of such a name could serve a
// redirect to it, and then change its address to the loopback.
func TestRegistryThatCannotBeResolved(t *testing.T) {
	service := httptest.NewServer(http.NotFoundHandler())
	defer service.Close()
	port := strings.TrimPrefix(service.URL, "http://127.0.0.1")
	const registry = "localhost" // resolves without a DNS server
	failed := errors.New("no such host")
	var g localGuard
	g.kinds = []addressKind{loopback} // the dialer may connect
	g.names.lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, failed }
	g.names.add(registry)
	transport := &http.Transport{}
	g.protectTransport(transport)
	for range 2 {
		c, err := transport.DialContext(t.Context(), "tcp", registry+port)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, failed) {
			t.Errorf("connection to a name that cannot be resolved: %v", err)
		}
	}
}
