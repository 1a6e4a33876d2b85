package image_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/podstead/podstead/runtime/image"
)

// demandToken makes a registry refuse requests without a token of a realm. The registry has a realm of its own at /token.
func demandToken(reg *registry, realm string) {
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token":
			_, _ = fmt.Fprint(w, `{"token":"secret"}`)
			return true
		case r.Header.Get("Authorization") == "Bearer secret":
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=\"s\"", realm))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
}

// tokens starts a service of the host that answers each request with a token, and returns its port, with a colon, and the number of
// requests.
func tokens(t *testing.T) (port string, reached *atomic.Int32) {
	t.Helper()
	reached = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		_, _ = fmt.Fprint(w, `{"token":"secret"}`)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://127.0.0.1"), reached
}

// mirrored configures the host of a mirror for a registry.
func mirrored(t *testing.T, certs, registry, host string) {
	t.Helper()
	hosts := fmt.Sprintf("server = %q\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+host, "http://"+host)
	file := filepath.Join(certs, registry, "hosts.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAuthenticationRealms checks requests for a token. The realm is on an address of this host, and the registry is there or elsewhere:
// it has another name, and a mirror on the loopback that the administrator has configured. No host has the link-local addresses: they are
// reserved (RFC 3927).
func TestAuthenticationRealms(t *testing.T) {
	const elsewhere = "registry.example"
	const onLoopback, onLinkLocal = "is a loopback address of the host", "is a link-local address of the host"
	for _, test := range []struct {
		name, registry, realm string // "": the registry on the loopback; PORT: that of the service; SELF: the address of the registry
		want                  string // of the error; "": the image is pulled
	}{
		{"loopback", elsewhere, "http://127.0.0.1PORT/token", "127.0.0.1 " + onLoopback},
		{"name of the loopback", elsewhere, "http://localhostPORT/token", onLoopback},
		{"mapped address", elsewhere, "http://[::ffff:127.0.0.1]PORT/token", "127.0.0.1 " + onLoopback},
		{"unspecified address", elsewhere, "http://0.0.0.0PORT/token", onLoopback},
		{"loopback with TLS", elsewhere, "https://127.0.0.1PORT/token", "127.0.0.1 " + onLoopback},
		{"link-local", elsewhere, "http://169.254.255.254/token", "169.254.255.254 " + onLinkLocal},
		{"link-local, IPv6", elsewhere, "http://[fe80::1%25lo]PORT/token", "fe80::1%lo " + onLinkLocal},
		{"the configured mirror", elsewhere, "http://SELF/token", ""},
		{"loopback of a registry on the loopback", "", "http://127.0.0.1PORT/token", ""},
		{"link-local of a registry on the loopback", "", "http://169.254.255.254/token", "169.254.255.254 " + onLinkLocal},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg := newRegistry(t)
			reg.push(t, sample("shop:1", "1"))
			port, reached := tokens(t)
			realm := strings.NewReplacer("PORT", port, "SELF", reg.host).Replace(test.realm)
			demandToken(reg, realm)
			certs, name := t.TempDir(), test.registry
			if name == "" {
				name = reg.host
			} else {
				mirrored(t, certs, name, reg.host)
			}
			ctx, w := newEnv(t, image.Options{CertsDir: certs})
			_, err := w.store.In().Ensure(ctx, name+"/shop:1", "", nil)
			if test.want == "" {
				if err != nil {
					t.Errorf("realm %s: %v", realm, err)
				}
				return
			}
			wantError(t, err, image.ReasonPull, "refused: ", test.want)
			if n := reached.Load(); n > 0 {
				t.Errorf("realm %s was requested %d times", realm, n)
			}
		})
	}
}
