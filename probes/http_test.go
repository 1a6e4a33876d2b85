package probes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// web responds to /N with status N, and with errors on request. It passes every request to seen.
func web(seen func(*http.Request)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			code = http.StatusOK
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "the body")
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	})
	mux.HandleFunc("/hops", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if n == 0 {
			return
		}
		http.Redirect(w, r, "/hops?n="+strconv.Itoa(n-1), http.StatusFound)
	})
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		block := bytes.Repeat([]byte("x"), 1<<16)
		for range 1 << 10 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Huge", strings.Repeat("x", 2<<20))
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "short")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		mux.ServeHTTP(w, r)
	})
}

func portOf(s *httptest.Server) spec.Port {
	return spec.Port{Number: int32(s.Listener.Addr().(*net.TCPAddr).Port)}
}

func TestHTTPGet(t *testing.T) {
	plain, secure := httptest.NewServer(web(func(*http.Request) {})), httptest.NewTLSServer(web(func(*http.Request) {}))
	defer plain.Close()
	defer secure.Close()
	two := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	}))
	two.EnableHTTP2 = true
	two.StartTLS()
	defer two.Close()
	six := httptest.NewUnstartedServer(web(func(*http.Request) {}))
	if err := six.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	six.Listener, _ = listen(t, "::1")
	six.Start()
	defer six.Close()
	elsewhere := "/to?url=http://localhost:" + portOf(plain).String() + "/500"
	c := &spec.Container{Name: "c", Ports: []spec.ContainerPort{{Name: "web", ContainerPort: portOf(plain).Number}}}
	for _, test := range []struct {
		name    string
		action  spec.HTTPGetAction
		address string
		outcome lifecycle.ProbeOutcome
		message string
	}{
		{name: "200", action: spec.HTTPGetAction{Path: "/200"}, outcome: lifecycle.ProbeSuccess},
		{name: "299", action: spec.HTTPGetAction{Path: "/299"}, outcome: lifecycle.ProbeSuccess},
		{name: "no path", outcome: lifecycle.ProbeSuccess},
		{name: "path without a slash", action: spec.HTTPGetAction{Path: "200"}, outcome: lifecycle.ProbeSuccess},
		{name: "path that cannot be parsed", action: spec.HTTPGetAction{Path: "/%zz"}, outcome: lifecycle.ProbeSuccess},
		{
			name: "400", action: spec.HTTPGetAction{Path: "/400"}, outcome: lifecycle.ProbeFailure,
			message: "HTTP probe failed with statuscode: 400",
		},
		{
			name: "500", action: spec.HTTPGetAction{Path: "/500"}, outcome: lifecycle.ProbeFailure,
			message: "HTTP probe failed with statuscode: 500",
		},
		{
			name: "304", action: spec.HTTPGetAction{Path: "/304"}, outcome: lifecycle.ProbeWarning,
			message: "Probe terminated redirects, Response body: ",
		},
		{
			name: "3xx without Location", action: spec.HTTPGetAction{Path: "/300"}, outcome: lifecycle.ProbeWarning,
			message: "Probe terminated redirects, Response body: the body",
		},
		{
			name: "redirect within the host", action: spec.HTTPGetAction{Path: "/to?url=/500"}, outcome: lifecycle.ProbeFailure,
			message: "statuscode: 500",
		},
		{
			name: "redirect to another port and scheme", action: spec.HTTPGetAction{Path: "/to?url=" + secure.URL + "/503"},
			outcome: lifecycle.ProbeFailure, message: "statuscode: 503",
		},
		{
			name: "redirect to another host", action: spec.HTTPGetAction{Path: elsewhere}, outcome: lifecycle.ProbeWarning,
			message: "Probe terminated redirects",
		},
		{name: "9 redirects", action: spec.HTTPGetAction{Path: "/hops?n=9"}, outcome: lifecycle.ProbeSuccess},
		{
			name: "10 redirects", action: spec.HTTPGetAction{Path: "/hops?n=10"}, outcome: lifecycle.ProbeFailure,
			message: "stopped after 10 redirects",
		},
		{name: "https", action: spec.HTTPGetAction{Port: portOf(secure), Scheme: "HTTPS"}, outcome: lifecycle.ProbeSuccess},
		{name: "https by HTTP/2", action: spec.HTTPGetAction{Port: portOf(two), Scheme: "HTTPS"}, outcome: lifecycle.ProbeSuccess},
		{
			name: "https to an http server", action: spec.HTTPGetAction{Scheme: "HTTPS"}, outcome: lifecycle.ProbeFailure,
			message: "server gave HTTP response to HTTPS client",
		},
		{name: "named port", action: spec.HTTPGetAction{Port: spec.Port{Name: "web"}}, outcome: lifecycle.ProbeSuccess},
		{name: "IPv6", action: spec.HTTPGetAction{Port: portOf(six)}, address: "::1", outcome: lifecycle.ProbeSuccess},
		{name: "host in the action", action: spec.HTTPGetAction{Host: "127.0.0.1"}, address: "192.0.2.1", outcome: lifecycle.ProbeSuccess},
		{name: "body of 64 MiB", action: spec.HTTPGetAction{Path: "/huge"}, outcome: lifecycle.ProbeSuccess},
		{
			name: "header of 2 MiB", action: spec.HTTPGetAction{Path: "/header"}, outcome: lifecycle.ProbeFailure,
			message: "server response headers exceeded 1048576 bytes",
		},
		{
			name: "truncated body", action: spec.HTTPGetAction{Path: "/cut"}, outcome: lifecycle.ProbeError,
			message: "read response: unexpected EOF",
		},
		{name: "invalid host", action: spec.HTTPGetAction{Host: "a b"}, outcome: lifecycle.ProbeError, message: "create request"},
		{
			name: "connection refused", action: spec.HTTPGetAction{Port: spec.Port{Number: closedPort}}, outcome: lifecycle.ProbeFailure,
			message: "connect: connection refused",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.action.Port == (spec.Port{}) {
				test.action.Port = portOf(plain)
			}
			if test.address == "" {
				test.address = "127.0.0.1"
			}
			t.Setenv("HTTP_PROXY", "http://192.0.2.1:1") // probes use no proxy
			got := prober(nil, nil).Run(t.Context(), target(test.address, c), &spec.Probe{HTTPGet: &test.action, TimeoutSeconds: 10})
			want(t, got, test.outcome, test.message)
		})
	}
}

func TestHTTPHeaders(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(web(func(r *http.Request) { got = r }))
	defer server.Close()
	for _, test := range []struct {
		name    string
		path    string
		headers []spec.HTTPHeader
		host    string
		want    http.Header
	}{
		{
			name: "default", host: server.Listener.Addr().String(),
			want: http.Header{"User-Agent": {"kube-probe/1.36"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
		{
			name: "given", path: "/to?url=/200", // a redirect keeps the custom Host
			headers: []spec.HTTPHeader{
				{Name: "host", Value: "example.com"},
				{Name: "user-agent", Value: "me"},
				{Name: "ACCEPT", Value: "text/plain"},
				{Name: "X-Twice", Value: "a"},
				{Name: "x-twice", Value: "b"},
			},
			host: "example.com",
			want: http.Header{
				"User-Agent": {"me"}, "Accept": {"text/plain"}, "Connection": {"close"}, "X-Twice": {"a", "b"},
				"Referer": {server.URL + "/to?url=/200"},
			},
		},
		{
			name: "empty headers are not sent", host: server.Listener.Addr().String(),
			headers: []spec.HTTPHeader{{Name: "User-Agent"}, {Name: "Accept"}},
			want:    http.Header{"Connection": {"close"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			action := &spec.HTTPGetAction{Port: portOf(server), Path: test.path, HTTPHeaders: test.headers}
			want(t, prober(nil, nil).Run(t.Context(), target("127.0.0.1", &spec.Container{}),
				&spec.Probe{HTTPGet: action, TimeoutSeconds: 10}), lifecycle.ProbeSuccess, "")
			if test.path != "" {
				test.want["Referer"] = []string{"http://" + server.Listener.Addr().String() + test.path}
			}
			got.Header.Del("Host")
			if diff := cmp.Diff(test.want, got.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if got.Host != test.host || got.Method != http.MethodGet {
				t.Errorf("%s of host %q, want GET of %q", got.Method, got.Host, test.host)
			}
		})
	}
}

// A slow server is cut off by the timeout, in its header and in its body.
func TestSlowResponseTimesOut(t *testing.T) {
	for _, test := range []struct {
		name, at, answer string
		outcome          lifecycle.ProbeOutcome
	}{
		{"in the header", "", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", lifecycle.ProbeFailure},
		{"in the body", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", strings.Repeat(".", 1000), lifecycle.ProbeError},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				serve := func(conn net.Conn) {
					defer conn.Close()
					_, _ = http.ReadRequest(bufio.NewReader(conn))
					if _, err := io.WriteString(conn, test.at); err != nil {
						return
					}
					for i := range test.answer {
						if _, err := io.WriteString(conn, test.answer[i:i+1]); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				}
				var servers sync.WaitGroup
				dial := func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					servers.Go(func() { serve(server) })
					return client, nil
				}
				start := time.Now()
				got := prober(nil, dial).Run(t.Context(), target("192.0.2.1", &spec.Container{}), &spec.Probe{
					HTTPGet: &spec.HTTPGetAction{Port: spec.Port{Number: 80}}, TimeoutSeconds: 4,
				})
				took := time.Since(start)
				servers.Wait() // the client closed the connections
				if got.Outcome != test.outcome || took != 4*time.Second {
					t.Errorf("got %+v after %v, want %s after 4 s", got, took, test.outcome)
				}
			})
		})
	}
}
