package probes

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/spec"
)

// A finished or cancelled request leaves no goroutine, whether it was connecting, in the TLS handshake, or waiting. A remaining
// goroutine fails the synctest bubble.
func TestCancelledRequestLeavesNoGoroutine(t *testing.T) {
	pipe := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }() // until the client closes the connection
		return client, nil
	}
	for _, test := range []struct {
		name, scheme string
		dial         Dial
	}{
		{"connecting", "http", func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		{"handshake", "https", pipe},
		{"waiting for the answer", "http", pipe},
	} {
		for _, by := range []string{"timeout", "context"} {
			t.Run(test.name+" by "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, timeout := t.Context(), 3*time.Second
					if by == "context" {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, timeout)
						defer cancel()
						timeout = 0
					}
					start := time.Now()
					req, err := Request{Scheme: test.scheme, Host: "::1", Port: 80, UserAgent: "test"}.HTTP(ctx)
					if err != nil {
						t.Fatal(err)
					}
					_, err = NewClient(test.dial).Do(req, timeout, 1)
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
						t.Errorf("returned %v after %v", err, time.Since(start))
					}
				})
			})
		}
	}
}

// The body is read up to the limit, without waiting for the rest.
func TestEndlessBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				_, _ = server.Read(make([]byte, 1<<16))
				_, err := io.WriteString(server, "HTTP/1.1 200 OK\r\n\r\n")
				for err == nil {
					_, err = io.WriteString(server, "again and ")
				}
			}()
			return client, nil
		}
		req, err := Request{Host: "192.0.2.1", Port: 80, Path: "/a?b"}.HTTP(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, err := NewClient(dial).Do(req, 0, 14)
		if err != nil || got.Status != http.StatusOK || string(got.Body) != "again and agai" || got.BodyErr != nil {
			t.Errorf("got %+v %q, %v", got, got.Body, err)
		}
	})
}

func TestBadRequest(t *testing.T) {
	if _, err := (Request{Scheme: "h t", Host: "x", Port: 80}).HTTP(t.Context()); err == nil {
		t.Error("a scheme with a space was accepted")
	}
}

// This test covers the request and redirects. The tests of probes and hooks cover the rest.
func TestWire(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Host+r.RequestURI+" "+strings.Join(r.Header["Accept"], ",")+" "+r.UserAgent())
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case "/elsewhere":
			http.Redirect(w, r, "http://localhost/", http.StatusFound)
		default:
			http.Redirect(w, r, "/again", http.StatusFound)
		}
	}))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	get := func(path string, headers ...spec.HTTPHeader) (Response, error) {
		req, err := Request{Host: "127.0.0.1", Port: port, Path: path, Headers: headers, UserAgent: "test"}.HTTP(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return NewClient(nil).Do(req, time.Minute, 10)
	}
	if got, err := get("/here", headers("Host", "me", "Accept", "")...); err != nil || got.Status != http.StatusFound {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := []string{"me/here  test", "me/elsewhere  test"}; !slices.Equal(seen, want) {
		t.Errorf("the server received %q, want %q", seen, want)
	}
	if _, err := get("/%zz"); err == nil || !strings.Contains(err.Error(), "stopped after 10 redirects") {
		t.Errorf("endless redirects: %v", err)
	}
	if want := net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/%25zz */* test"; seen[2] != want {
		t.Errorf("the server received %q, want %q", seen[2], want)
	}
}

// headers returns headers from names and values in turn.
func headers(list ...string) (all []spec.HTTPHeader) {
	for pair := range slices.Chunk(list, 2) {
		all = append(all, spec.HTTPHeader{Name: pair[0], Value: pair[1]})
	}
	return all
}
