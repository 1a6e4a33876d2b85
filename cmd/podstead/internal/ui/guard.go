package ui

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/plain"
)

// policy is the content security policy of all responses. Without a Trusted Types policy, a script cannot make elements of a text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const (
	// keyHeader is the header with the key.
	keyHeader = "Podstead-Key"
	// maxBody bounds the body of a request, in bytes.
	maxBody = 1 << 10
	// zoneHeader is the header with the time zone of the browser: minutes east of UTC.
	zoneHeader = "Podstead-Zone"
	maxZone    = 24 * 60
)

// guard decides which requests are answered.
type guard struct {
	hosts              map[string]bool // values of Host
	policy             string          // of all responses but those of the frame of a terminal
	token, cookie, key string
	cookieName         string // with the port: browsers send a cookie to all ports
}

func newGuard(address netip.AddrPort) *guard {
	port := strconv.Itoa(int(address.Port()))
	g := &guard{
		hosts: map[string]bool{}, policy: policy,
		token: rand.Text(), cookie: rand.Text(), key: rand.Text(), cookieName: "podstead-" + port,
	}
	for _, host := range []string{address.Addr().String(), "localhost"} {
		g.hosts[net.JoinHostPort(host, port)] = true
		if port == "80" { // browsers leave it out
			g.hosts[host] = true
		}
	}
	return g
}

// ParseAddress reads the address to listen on: a loopback address and a port.
func ParseAddress(text string) (netip.AddrPort, error) {
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		return address, fmt.Errorf("must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080")
	}
	if a := address.Addr(); a != netip.AddrFrom4([4]byte{127, 0, 0, 1}) && a != netip.IPv6Loopback() {
		return address, fmt.Errorf("must be 127.0.0.1 or ::1: the page is for this host only, use ssh -L to reach it from another one")
	}
	return address, nil
}

// check rejects requests that are not from the page, and sets the headers of all responses. It reports whether the request is allowed.
func (g *guard) check(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", g.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !g.hosts[r.Host] {
		refuse(w, http.StatusForbidden, "the request is for another host")
		return false
	}
	origin := r.Header.Get("Origin")
	if (origin != "" || r.Method == http.MethodPost || r.Header.Get("Upgrade") != "") && origin != "http://"+r.Host {
		refuse(w, http.StatusForbidden, "the request is from another page")
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return true
}

// enter exchanges the token for the cookie and the key.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "the body must have a token")
		return
	}
	if !equal(body.Token, g.token) {
		refuse(w, http.StatusUnauthorized, "wrong token")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookieName, Value: g.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	answer(w, map[string]string{"key": g.key})
}

// has reports whether a request has the cookie and the key.
func (g *guard) has(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookieName)
	return err == nil && equal(cookie.Value, g.cookie) && equal(keyOf(r), g.key)
}

// keyOf returns the key of a request: a header, or a subprotocol of a WebSocket.
func keyOf(r *http.Request) string {
	if r.Header.Get("Upgrade") != "" {
		for protocol := range strings.SplitSeq(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
			if key, found := strings.CutPrefix(strings.TrimSpace(protocol), keyProtocol); found {
				return key
			}
		}
	}
	return r.Header.Get(keyHeader)
}

// zoneOf returns the time zone of the browser, in which texts have their times. Without a header, it is that of the host.
func zoneOf(r *http.Request) (*time.Location, error) {
	text := r.Header.Get(zoneHeader)
	if text == "" {
		return time.Local, nil
	}
	minutes, err := strconv.Atoi(text)
	if err != nil || minutes < -maxZone || minutes > maxZone {
		return nil, fmt.Errorf("must be minutes between %d and %d", -maxZone, maxZone)
	}
	return time.FixedZone("", minutes*60), nil
}

// localZone is the time zone of a request that was not refused.
func localZone(r *http.Request) *time.Location {
	zone, err := zoneOf(r)
	if err != nil {
		return time.UTC // not reached: ServeHTTP has refused the request
	}
	return zone
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": plain.Text(message)}) // the client is gone if that fails
}

// answer answers with a value. Hidden characters in its texts are escaped, except line breaks.
func answer(w http.ResponseWriter, v any) {
	text, err := escaped(v)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client is gone if that fails
}

// escaped returns a value in JSON, with escaped hidden characters in its texts.
func escaped(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var read any
	if err := decoder.Decode(&read); err != nil {
		return nil, err
	}
	return json.Marshal(escape(read))
}

// escape escapes hidden characters in the texts of a JSON value, except line breaks.
func escape(v any) any {
	switch v := v.(type) {
	case string:
		lines := strings.Split(v, "\n")
		for i := range lines {
			lines[i] = plain.Text(lines[i])
		}
		return strings.Join(lines, "\n")
	case []any:
		for i := range v {
			v[i] = escape(v[i])
		}
	case map[string]any:
		for key, value := range v {
			v[key] = escape(value)
		}
	}
	return v
}
