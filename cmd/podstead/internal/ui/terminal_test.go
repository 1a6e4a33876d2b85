package ui

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
	"github.com/podstead/podstead/api/client"
)

// sessions is a daemon that passes the sessions of clients to the test.
type sessions struct {
	client *client.Client
	conns  chan *channel.Conn
	query  chan url.Values
}

func newSessions(t *testing.T) *sessions {
	t.Helper()
	d := &sessions{conns: make(chan *channel.Conn, 2*maxTerminals), query: make(chan url.Values, 2*maxTerminals)}
	d.client = fakeDaemon(t, map[string]http.HandlerFunc{"GET /v1/pods/{name}/exec": func(w http.ResponseWriter, r *http.Request) {
		conn, err := channel.Accept(w, r, channel.Stdin)
		if err != nil {
			t.Error(err)
			return
		}
		q := r.URL.Query()
		q.Set("pod", r.PathValue("name"))
		d.query <- q
		d.conns <- conn
		<-conn.Done()
		conn.Close()
	}})
	return d
}

const terminalPath = "/api/exec?pod=web&uid=u&container=app&width=80&height=24"

// dial opens a terminal as a browser does.
func (s *site) dial(t *testing.T) *channel.Conn {
	t.Helper()
	r := s.request(http.MethodGet, terminalPath, "", with("Origin", "http://"+s.host))
	conn, refused, err := channel.Dial(t.Context(), http.DefaultClient, r.URL.String(), r.Header, channel.Stdout)
	if refused != nil {
		refused.Body.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// ended waits for the status of a terminal.
func ended(t *testing.T, conn *channel.Conn) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	status, err := conn.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return api.ReadSessionStatus(status)
}

// TestTerminal checks what reaches the shell and the browser, and that a browser that is closed ends the session.
func TestTerminal(t *testing.T) {
	t.Parallel()
	d := newSessions(t)
	s := newSite(t, d.client, (*Server).AllowActions)
	browser := s.dial(t)
	want := url.Values{
		"pod": {"web"}, "uid": {"u"}, "container": {"app"}, "command": {"sh"}, "width": {"80"}, "height": {"24"},
		"stdin": {"true"}, "stdout": {"true"}, "tty": {"true"},
	}
	if diff := cmp.Diff(want, <-d.query); diff != "" {
		t.Errorf("the request to the daemon (-want +got):\n%s", diff)
	}
	shell := <-d.conns
	if err := browser.Resize(channel.Size{Width: 100, Height: 30}); err != nil {
		t.Error(err)
	}
	if size := <-shell.Sizes(); size != (channel.Size{Width: 100, Height: 30}) {
		t.Errorf("size %v", size)
	}
	typed := make([]byte, 5)
	if _, err := browser.Writer(channel.Stdin).Write([]byte("exit\n")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(shell.Reader(channel.Stdin), typed); err != nil || string(typed) != "exit\n" {
		t.Errorf("%q, %v", typed, err)
	}
	if _, err := shell.Writer(channel.Stdout).Write([]byte("bye")); err != nil {
		t.Error(err)
	}
	if err := shell.Finish(api.SessionStatus(3, nil)); err != nil {
		t.Error(err)
	}
	if output, err := io.ReadAll(browser.Reader(channel.Stdout)); err != nil || string(output) != "bye" {
		t.Errorf("%q, %v", output, err)
	}
	if code, err := ended(t, browser); code != 3 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}

	closed := s.dial(t)
	shell = <-d.conns
	closed.Close()
	await(t, func() bool { return shell.Err() != nil })
	await(t, func() bool { return s.requests() == 0 && len(s.terminals) == 0 })
}

// TestTerminalErrors checks that errors of the daemon reach the browser.
func TestTerminalErrors(t *testing.T) {
	t.Parallel()
	d := newSessions(t)
	s := newSite(t, d.client, (*Server).AllowActions)
	noShell := s.dial(t)
	if err := (<-d.conns).Finish(api.SessionStatus(0, &api.CommandError{Code: 127, Message: "no sh\u202e"})); err != nil {
		t.Error(err)
	}
	if code, err := ended(t, noShell); code != 127 || err == nil || err.Error() != `no sh\u202e` {
		t.Errorf("without a shell: exit code %d, %v", code, err)
	}
	refused := s.dial(t)
	full := &api.Error{Status: http.StatusServiceUnavailable, Message: "disk\u202e full", Hint: "delete\x1b[2J files"}
	if err := (<-d.conns).Finish(api.SessionStatus(0, full)); err != nil {
		t.Error(err)
	}
	_, err := ended(t, refused)
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Message != `disk\u202e full` || e.Hint != `delete\x1b[2J files` {
		t.Errorf("an error with a hint: %+v", err)
	}
	for range maxTerminals {
		s.dial(t)
		<-d.conns
	}
	_, err = ended(t, s.dial(t))
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Reason != api.ReasonTooManySessions {
		t.Errorf("terminal %d: %v", maxTerminals+1, err)
	}
	lost := newSite(t, noClient(), (*Server).AllowActions)
	if _, err := ended(t, lost.dial(t)); err == nil || !strings.Contains(err.Error(), "daemon unavailable") {
		t.Errorf("without a daemon: %v", err)
	}
}

// TestTerminalFlood checks that output which the browser does not read is not kept without bound, and holds up nothing else.
func TestTerminalFlood(t *testing.T) {
	t.Parallel()
	d := newSessions(t)
	s := newSite(t, d.client, (*Server).AllowActions)
	browser := s.dial(t)
	shell := <-d.conns
	var written atomic.Int64
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for block := make([]byte, 1<<10); ; written.Add(int64(len(block))) {
			if _, err := shell.Writer(channel.Stdout).Write(block); err != nil {
				return
			}
		}
	}()
	await(t, func() bool { return written.Load() > channel.Window })
	for width := range uint16(10) {
		if err := browser.Resize(channel.Size{Width: 80 + width, Height: 24}); err != nil {
			t.Error(err)
		}
		for size := range shell.Sizes() {
			if size.Width == 80+width {
				break
			}
		}
	}
	if n := written.Load(); n > 3*channel.Window {
		t.Errorf("%d bytes were taken, at most %d can be kept", n, 3*channel.Window)
	}
	browser.Close()
	<-stopped
}

// TestTerminalAccess checks which requests open a terminal. Each rule has a request that only this rule rejects.
func TestTerminalAccess(t *testing.T) {
	t.Parallel()
	d := newSessions(t)
	s := newSite(t, d.client, (*Server).AllowActions)
	forbidden := newSite(t, d.client)
	upgrade := func(s *site, path string) *http.Request {
		return s.request(http.MethodGet, path, "", without(keyHeader), with("Origin", "http://"+s.host), with("Connection", "Upgrade"),
			with("Upgrade", "websocket"), with("Sec-WebSocket-Version", "13"), with("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
			with("Sec-WebSocket-Protocol", channel.FlowSubprotocol+", "+keyProtocol+s.guard.key))
	}
	for name, test := range map[string]struct {
		s      *site
		path   string
		change func(*http.Request)
		want   int
	}{
		"the page":  {want: http.StatusSwitchingProtocols},
		"no cookie": {want: http.StatusUnauthorized, change: without("Cookie")},
		"no key": {
			want: http.StatusUnauthorized, change: with("Sec-WebSocket-Protocol", channel.FlowSubprotocol),
		},
		"another key": {
			want: http.StatusUnauthorized, change: with("Sec-WebSocket-Protocol", channel.FlowSubprotocol+", "+keyProtocol+s.guard.cookie),
		},
		"no origin":       {want: http.StatusForbidden, change: without("Origin")},
		"the null origin": {want: http.StatusForbidden, change: with("Origin", "null")},
		"another port":    {want: http.StatusForbidden, change: with("Origin", "http://127.0.0.1:1")},
		"another site":    {want: http.StatusForbidden, change: with("Origin", "http://attacker.example")},
		"DNS rebinding": {want: http.StatusForbidden, change: func(r *http.Request) {
			r.Host = "attacker.example"
			r.Header.Set("Origin", "http://attacker.example")
		}},
		"no upgrade": {want: http.StatusUpgradeRequired, change: func(r *http.Request) {
			r.Header.Del("Upgrade")
			r.Header.Del("Connection")
			r.Header.Set(keyHeader, s.guard.key)
		}},
		"no version":      {want: http.StatusBadRequest, change: without("Sec-WebSocket-Version")},
		"other messages":  {want: http.StatusBadRequest, change: with("Sec-WebSocket-Protocol", keyProtocol+s.guard.key)},
		"no UID":          {want: http.StatusBadRequest, path: "/api/exec?pod=web&container=app&width=80&height=24"},
		"no container":    {want: http.StatusBadRequest, path: "/api/exec?pod=web&uid=u&width=80&height=24"},
		"no pod":          {want: http.StatusBadRequest, path: "/api/exec?uid=u&container=app&width=80&height=24"},
		"no size":         {want: http.StatusBadRequest, path: "/api/exec?pod=web&uid=u&container=app&width=80"},
		"a large size":    {want: http.StatusBadRequest, path: "/api/exec?pod=web&uid=u&container=app&width=65536&height=24"},
		"without actions": {want: http.StatusNotFound, s: forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			to, path := test.s, test.path
			if to == nil {
				to = s
			}
			if path == "" {
				path = terminalPath
			}
			r := upgrade(to, path)
			if test.change != nil {
				test.change(r)
			}
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("status %d, want %d", answer.StatusCode, test.want)
			}
			if test.want == http.StatusSwitchingProtocols {
				<-d.conns
			} else if len(d.conns) > 0 {
				t.Error("the daemon has a session")
			}
		})
	}
}

// TestTerminalFiles checks the frame of a terminal: it and xterm.js exist with actions only, its policy adds inline styles to that of the
// page, and only pages of the same origin may have it in a frame.
func TestTerminalFiles(t *testing.T) {
	t.Parallel()
	s, forbidden := newSite(t, noClient(), (*Server).AllowActions), newSite(t, noClient())
	rules := func(policy string) map[string]string {
		rules := map[string]string{}
		for rule := range strings.SplitSeq(policy, "; ") {
			name, value, _ := strings.Cut(rule, " ")
			rules[name] = value
		}
		return rules
	}
	page := rules(policy)
	for path, kind := range map[string]string{
		"/terminal/": "text/html; charset=utf-8", "/terminal/terminal.js": "text/javascript; charset=utf-8",
		"/terminal/bounds.js": "text/javascript; charset=utf-8", "/terminal/style.css": "text/css; charset=utf-8",
		"/terminal/LICENSE":   "text/plain; charset=utf-8",
		"/terminal/xterm.mjs": "text/javascript", "/terminal/addon-fit.mjs": "text/javascript", "/terminal/xterm.css": "text/css",
	} {
		code, header, body := s.do(s.request(http.MethodGet, path, ""))
		if code != http.StatusOK || header.Get("Content-Type") != kind || len(body) < 500 || strings.HasPrefix(body, "\x1f\x8b") {
			t.Errorf("%s: status %d, %s, %d bytes", path, code, header.Get("Content-Type"), len(body))
		}
		want := rules(policy)
		want["style-src"], want["frame-ancestors"] = "'self' 'unsafe-inline'", "'self'"
		delete(want, "img-src")
		if diff := cmp.Diff(want, rules(header.Get("Content-Security-Policy"))); diff != "" {
			t.Errorf("%s: the policy of the frame (-want +got):\n%s", path, diff)
		}
		if code, _, _ := forbidden.do(forbidden.request(http.MethodGet, path, "")); code != http.StatusNotFound {
			t.Errorf("%s without actions: status %d", path, code)
		}
	}
	for path, want := range map[string]int{
		"/terminal/none": http.StatusNotFound, "/terminal/package.json": http.StatusNotFound, "/terminal": http.StatusTemporaryRedirect,
	} {
		r := s.request(http.MethodGet, path, "")
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, answer.StatusCode, want)
		}
	}
	_, header, _ := forbidden.do(forbidden.request(http.MethodGet, "/", ""))
	if diff := cmp.Diff(page, rules(header.Get("Content-Security-Policy"))); diff != "" {
		t.Errorf("the policy without actions (-want +got):\n%s", diff)
	}
	_, header, _ = s.do(s.request(http.MethodGet, "/", ""))
	page["frame-src"] = "'self'"
	if diff := cmp.Diff(page, rules(header.Get("Content-Security-Policy"))); diff != "" {
		t.Errorf("the policy with actions (-want +got):\n%s", diff)
	}
}

// TestTerminalBounds runs testdata/bounds.mjs, which checks what xterm.js makes of output that would take memory or time without end.
func TestTerminalBounds(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Log("not checked: node is not installed; TestPageTerminal checks a part of it in a browser")
		return
	}
	dir := t.TempDir()
	for name, of := range map[string]string{"bounds.mjs": "bounds.js", "xterm.mjs": "xterm.mjs.gz"} {
		f, err := terminalFiles.Open("terminal/" + of)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := io.Reader(f)
		if strings.HasSuffix(of, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	test, err := filepath.Abs("testdata/bounds.mjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, node, test, dir).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestVendored checks that xterm.js has the versions of package.json, to which package-lock.json has checksums, and its licences.
func TestVendored(t *testing.T) {
	t.Parallel()
	read := func(name string, v any) {
		t.Helper()
		text, err := os.ReadFile("terminal/" + name)
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var wanted struct{ Dependencies map[string]string }
	var locked struct {
		Packages map[string]struct{ Version, Integrity, Resolved string }
	}
	read("package.json", &wanted)
	read("package-lock.json", &locked)
	licences, err := terminalFiles.ReadFile("terminal/LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if len(wanted.Dependencies) != 2 || len(locked.Packages) != 1+len(wanted.Dependencies) {
		t.Errorf("package.json has %d packages, package-lock.json %d", len(wanted.Dependencies), len(locked.Packages)-1)
	}
	for name, version := range wanted.Dependencies {
		l := locked.Packages["node_modules/"+name]
		if l.Version != version || !strings.HasPrefix(l.Integrity, "sha512-") || l.Resolved != "" {
			t.Errorf("%s %s: package-lock.json has %v", name, version, l)
		}
		if !strings.Contains(string(licences), "==== "+name+" "+version+": LICENSE ====\n\nCopyright (c) ") {
			t.Errorf("%s %s: the licence is missing, run tools/xterm", name, version)
		}
	}
	f, err := terminalFiles.Open("terminal/xterm.mjs.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(text), "export{") {
		t.Errorf("xterm.mjs: %d bytes, %v", len(text), err)
	}
}
