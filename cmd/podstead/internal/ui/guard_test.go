package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/api/client"
)

// testTimeout bounds what a test waits for.
const testTimeout = 2 * time.Minute

// site is a server with a browser that has entered.
type site struct {
	*Server
	t    *testing.T
	host string
}

// newSite serves the page until the end of the test.
func newSite(t *testing.T, c *client.Client, change ...func(*Server)) *site {
	t.Helper()
	s, err := Listen(t.Context(), c, netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("serve: %v", err)
		}
	})
	return &site{s, t, s.listen.Addr().String()}
}

// requests returns the number of requests in progress.
func (s *site) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// request returns a request of the page, to which changes are made.
func (s *site) request(method, path, body string, change ...func(*http.Request)) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.host+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: s.guard.cookieName, Value: s.guard.cookie})
	r.Header.Set(keyHeader, s.guard.key)
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://"+s.host)
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// do sends a request and returns the status, the header and the body.
func (s *site) do(r *http.Request) (int, http.Header, string) {
	s.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(body)
}

func noClient() *client.Client { return client.New("/nonexistent/socket", "test") }

func without(header string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(header) }
}

func with(header, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(header, value) }
}

// TestAccess checks which requests are answered. Each rule has a request that only this rule rejects.
func TestAccess(t *testing.T) {
	t.Parallel()
	s := newSite(t, noClient())
	_, port, _ := strings.Cut(s.host, ":")
	forHost := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	cookie := func(value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Cookie")
			r.AddCookie(&http.Cookie{Name: s.guard.cookieName, Value: value})
		}
	}
	token := `{"token": "` + s.guard.token + `"}`
	for name, test := range map[string]struct {
		method, path, body string
		change             func(*http.Request)
		want               int
	}{
		"the page":                {path: "/", change: without("Cookie"), want: http.StatusOK},
		"a request of the page":   {path: "/api/alive", want: http.StatusNoContent},
		"its origin":              {path: "/api/alive", change: with("Origin", "http://"+s.host), want: http.StatusNoContent},
		"by the name localhost":   {path: "/api/alive", change: forHost("localhost:" + port), want: http.StatusNoContent},
		"a time zone":             {path: "/api/alive", change: with(zoneHeader, "-570"), want: http.StatusNoContent},
		"no time zone":            {path: "/api/alive", change: with(zoneHeader, "UTC"), want: http.StatusBadRequest},
		"a far time zone":         {path: "/api/alive", change: with(zoneHeader, "1441"), want: http.StatusBadRequest},
		"no cookie":               {path: "/api/alive", change: without("Cookie"), want: http.StatusUnauthorized},
		"another cookie":          {path: "/api/alive", change: cookie(s.guard.key), want: http.StatusUnauthorized},
		"no key":                  {path: "/api/alive", change: without(keyHeader), want: http.StatusUnauthorized},
		"another key":             {path: "/api/alive", change: with(keyHeader, s.guard.cookie), want: http.StatusUnauthorized},
		"an unknown path":         {path: "/api/none", change: without("Cookie"), want: http.StatusUnauthorized},
		"a path in other words":   {path: "//api/pods", change: without("Cookie"), want: http.StatusUnauthorized},
		"a path with dots":        {path: "/x/../api/pods", change: without("Cookie"), want: http.StatusUnauthorized},
		"DNS rebinding":           {path: "/api/alive", change: forHost("attacker.example:" + port), want: http.StatusForbidden},
		"DNS rebinding, the page": {path: "/", change: forHost("attacker.example:" + port), want: http.StatusForbidden},
		"another port":            {path: "/api/alive", change: forHost("127.0.0.1:1"), want: http.StatusForbidden},
		"another origin":          {path: "/api/alive", change: with("Origin", "http://attacker.example"), want: http.StatusForbidden},
		"another local origin":    {path: "/api/alive", change: with("Origin", "http://127.0.0.1:1"), want: http.StatusForbidden},
		"the null origin":         {path: "/api/alive", change: with("Origin", "null"), want: http.StatusForbidden},
		"the origin with https":   {path: "/api/alive", change: with("Origin", "https://"+s.host), want: http.StatusForbidden},
		"another method":          {method: http.MethodPost, path: "/api/pods", want: http.StatusNotFound},
		"the token":               {method: http.MethodPost, path: "/enter", body: token, want: http.StatusOK},
		"the token by GET":        {path: "/enter?token=" + s.guard.token, want: http.StatusNotFound},
		"the token of another site": {
			method: http.MethodPost, path: "/enter", body: token, change: with("Origin", "http://attacker.example"), want: http.StatusForbidden,
		},
		"the token without an origin": {
			method: http.MethodPost, path: "/enter", body: token, change: without("Origin"), want: http.StatusForbidden,
		},
		"no token":      {method: http.MethodPost, path: "/enter", body: "{}", want: http.StatusUnauthorized},
		"another token": {method: http.MethodPost, path: "/enter", body: `{"token": "x"}`, want: http.StatusUnauthorized},
		"no JSON":       {method: http.MethodPost, path: "/enter", body: "x", want: http.StatusBadRequest},
		"a large body": {
			method: http.MethodPost, path: "/enter", body: strings.Repeat(" ", maxBody) + token, want: http.StatusBadRequest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodGet
			}
			change := func(*http.Request) {}
			if test.change != nil {
				change = test.change
			}
			if got, _, body := s.do(s.request(method, test.path, test.body, change)); got != test.want {
				t.Errorf("status %d, want %d: %s", got, test.want, body)
			}
		})
	}
}

// TestEnter checks the cookie and the key.
func TestEnter(t *testing.T) {
	t.Parallel()
	s := newSite(t, noClient())
	page, token, found := strings.Cut(s.URL(), "#token=")
	if page != "http://"+s.host+"/" || !found || len(token) < 26 {
		t.Errorf("URL %s", s.URL())
	}
	_, header, body := s.do(s.request(http.MethodPost, "/enter", `{"token": "`+token+`"}`, without("Cookie"), without(keyHeader)))
	var answer struct{ Key string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Key != s.guard.key {
		t.Errorf("%v: %s", err, body)
	}
	cookie, err := http.ParseSetCookie(header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Value != s.guard.cookie || cookie.Domain != "" {
		t.Errorf("cookie %v", cookie)
	}
	if other := newSite(t, noClient()); other.guard.token == token || other.guard.cookie == cookie.Value || other.guard.key == answer.Key {
		t.Error("two servers have the same secrets")
	}
}

// TestHeaders checks the headers of all kinds of responses.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t, noClient())
	for _, r := range []*http.Request{
		s.request(http.MethodGet, "/", ""), s.request(http.MethodGet, "/app.js", ""), s.request(http.MethodGet, "/none", ""),
		s.request(http.MethodGet, "/api/alive", ""), s.request(http.MethodGet, "/api/pods", "", without("Cookie")),
		s.request(http.MethodGet, "/", "", func(r *http.Request) { r.Host = "attacker.example" }),
	} {
		_, header, _ := s.do(r)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if name == "Cache-Control" && r.URL.Path == "/none" {
				continue // http.Error removes it
			}
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", r.URL.Path, name, got, want)
			}
		}
		policy := header.Get("Content-Security-Policy")
		for _, rule := range []string{
			"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
			"trusted-types 'none'",
		} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: the policy has no %s: %s", r.URL.Path, rule, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, ":") {
			t.Errorf("%s: policy %s", r.URL.Path, policy)
		}
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins may read the response", r.URL.Path)
		}
	}
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"127.0.0.1:0": true, "127.0.0.1:8080": true, "[::1]:8080": true,
		"0.0.0.0:8080": false, "[::]:8080": false, "192.0.2.1:80": false, "127.0.0.2:80": false, "[::ffff:127.0.0.1]:80": false,
		"[::1%lo]:80": false, "localhost:8080": false, ":8080": false, "8080": false, "": false,
		"127.0.0.1": false, "127.0.0.1:99999": false,
	} {
		if _, err := ParseAddress(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestIdle checks that the server ends if no page is open, and not before.
func TestIdle(t *testing.T) {
	t.Parallel()
	s, err := Listen(t.Context(), noClient(), netip.MustParseAddrPort("[::1]:0"))
	if err != nil {
		t.Fatal(err)
	}
	s.idle = 50 * time.Millisecond
	s.count(1)
	if s.isIdle(time.Now().Add(time.Hour)) {
		t.Error("idle with an open page")
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context()) }()
	s.count(-1)
	select {
	case err := <-served:
		if !errors.Is(err, ErrIdle) {
			t.Error(err)
		}
	case <-time.After(testTimeout):
		t.Error("the server does not end")
	}
}

// TestSlowBody checks that a client whose body does not arrive is disconnected, and that only the page keeps its connection.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, noClient(), func(s *Server) { s.header = 500 * time.Millisecond })
	for path, method := range map[string]string{"/": http.MethodGet, "/api/pods": http.MethodGet, "/enter": http.MethodPost} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(testTimeout)) // the read below fails then
			if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%[3]s\r\nContent-Length: 1000\r\n\r\n",
				method, path, s.host); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
		})
	}
	patient := newSite(t, noClient())
	for _, test := range []struct {
		change func(*http.Request)
		closed bool
	}{{func(*http.Request) {}, false}, {without(keyHeader), true}} {
		answer, err := http.DefaultClient.Do(patient.request(http.MethodGet, "/", "", test.change))
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.Close != test.closed {
			t.Errorf("%v, the connection is closed: %v, want %v", err, answer.Close, test.closed)
		}
	}
}

// TestConnections checks that idle connections do not keep a page from being served for long, and are bounded.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := newSite(t, noClient())
	var bodies []io.Closer
	defer func() {
		for _, b := range bodies {
			_ = b.Close()
		}
	}()
	transport := &http.Transport{DisableKeepAlives: true}
	open := func(ctx context.Context) error {
		r := s.request(http.MethodGet, "/api/pods", "")        //nolint:contextcheck // the next line sets it
		answer, err := transport.RoundTrip(r.WithContext(ctx)) //nolint:bodyclose // the test closes it
		if err == nil {
			bodies = append(bodies, answer.Body)
		}
		return err
	}
	for range maxConnections { // each of these streams waits for the daemon
		if err := open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := open(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connection %d is accepted: %v", maxConnections+1, err)
	}
	if err := errors.Join(bodies[0].Close(), open(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestEscaped checks that hidden characters are escaped in all texts of an answer, except line breaks.
func TestEscaped(t *testing.T) {
	t.Parallel()
	type pod struct {
		Name  string   `json:"name"`
		Lines []string `json:"lines"`
		Seq   uint64   `json:"seq"`
	}
	text, err := escaped(pod{"a\u202eb", []string{"c\nd\x1b"}, 1<<63 + 1})
	if want := `{"lines":["c\nd\\x1b"],"name":"a\\u202eb","seq":9223372036854775809}`; err != nil || string(text) != want {
		t.Errorf("%v: %s, want %s", err, text, want)
	}
}
