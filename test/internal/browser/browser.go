// Package browser drives a headless Chromium with the DevTools protocol, over pipes: Chromium listens on no port. The few commands that
// tests need do not justify a dependency, which would be in the go.mod of the product.
package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is the name of the browser's program.
const Program = "chromium"

// callTimeout bounds a command of the protocol.
const callTimeout = 2 * time.Minute

// Browser is a browser without a profile of a user.
type Browser struct {
	t      testing.TB
	in     io.Writer
	stderr string        // a file
	end    chan struct{} // closed when the browser has exited

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	pages   map[string]*Page // by session
}

// message is a message of the protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// New starts a browser in a network, with a profile in dir and more arguments, that ends with the test.
func New(t testing.TB, network *Network, dir string, args ...string) *Browser {
	t.Helper()
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The cleanup ends it: the context of the test ends before.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), Program, append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--no-proxy-server", "--remote-debugging-pipe",
		"--user-data-dir=" + filepath.Join(dir, "profile"), "about:blank",
	}, args...)...)
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = stderr
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir)
	cmd.ExtraFiles = []*os.File{toRead, fromWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has processes of its own
	if err := network.Do(cmd.Start); err != nil {
		t.Fatalf("%v: run .ci/deps faults first", err)
	}
	_, _ = toRead.Close(), fromWrite.Close()
	b := &Browser{t: t, in: toWrite, stderr: stderr.Name(), end: make(chan struct{})}
	b.waiting, b.pages = map[int]chan message{}, map[string]*Page{}
	go func() {
		defer close(b.end)
		b.read(fromRead)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		<-b.end
		_, _, _ = toWrite.Close(), fromRead.Close(), stderr.Close()
	})
	return b
}

// read reads messages, each of which ends with a zero byte, until the browser exits.
func (b *Browser) read(r io.Reader) {
	for in := bufio.NewReader(r); ; {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			return
		}
		b.mu.Lock()
		if answer := b.waiting[m.ID]; m.ID != 0 && answer != nil {
			delete(b.waiting, m.ID)
			answer <- m
		} else if p := b.pages[m.Session]; p != nil {
			p.add(&m)
		}
		b.mu.Unlock()
	}
}

// call sends a command to a session; empty: to the browser.
func (b *Browser) call(session, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	m, err := json.Marshal(message{ID: b.last, Session: session, Method: method, Params: text})
	b.waiting[b.last] = answer
	if err == nil {
		_, err = b.in.Write(append(m, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	timeout := time.NewTimer(callTimeout)
	defer timeout.Stop()
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-b.end:
		text, err := os.ReadFile(b.stderr)
		return errors.Join(fmt.Errorf("the browser has exited: %s", text), err)
	case <-timeout.C:
		return fmt.Errorf("%s: no answer", method)
	}
}

// Page is a page of a browser.
type Page struct {
	b       *Browser
	target  string
	session string

	// These are guarded by the mutex of the browser.
	problems []string
	requests []string
}

// Open opens a page.
func (b *Browser) Open(url string) *Page {
	b.t.Helper()
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	if err == nil {
		err = b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	p := &Page{b: b, target: target.TargetID, session: attached.SessionID}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Runtime", "Log", "Network", "Page"} {
		p.Call(domain+".enable", nil)
	}
	p.Go(url)
	return p
}

// Close closes the page.
func (p *Page) Close() {
	p.b.t.Helper()
	if err := p.b.call("", "Target.closeTarget", map[string]any{"targetId": p.target}, nil); err != nil {
		p.b.t.Fatal(err)
	}
}

// Go opens an address.
func (p *Page) Go(url string) {
	p.b.t.Helper()
	p.Call("Page.navigate", map[string]any{"url": url})
}

// URL returns the address of a path on the site of the page.
func (p *Page) URL(path string) string {
	p.b.t.Helper()
	var origin string
	if err := p.Eval("location.origin", &origin); err != nil {
		p.b.t.Fatal(err)
	}
	return origin + path
}

// Call sends a command to the page.
func (p *Page) Call(method string, params map[string]any) {
	p.b.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	if err := p.b.call(p.session, method, params, nil); err != nil {
		p.b.t.Fatal(err)
	}
}

// add takes an event of the page.
func (p *Page) add(m *message) {
	var e struct {
		Request struct{ URL string }
		Entry   struct{ Level, Text, URL string }
		Type    string
		Args    []struct {
			Value       any
			Description string
		}
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	_ = json.Unmarshal(m.Params, &e) // an event of another shape has none of these
	switch m.Method {
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, e.Request.URL)
	case "Log.entryAdded":
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.problems = append(p.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case "Runtime.exceptionThrown":
		p.problems = append(p.problems, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		if e.Type == "error" || e.Type == "warning" {
			p.problems = append(p.problems, fmt.Sprint(e.Args))
		}
	}
}

// Problems are the errors and warnings of the console since the last call.
func (p *Page) Problems() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	list := p.problems
	p.problems = nil
	return list
}

// AwaitProblem waits until an error or a warning of the console has a text. It drops those before.
func (p *Page) AwaitProblem(text string) {
	p.b.t.Helper()
	timeout := time.After(callTimeout)
	var seen []string
	for tick := time.Tick(50 * time.Millisecond); ; {
		list := p.Problems()
		if slices.ContainsFunc(list, func(problem string) bool { return strings.Contains(problem, text) }) {
			return
		}
		seen = append(seen, list...)
		select {
		case <-tick:
		case <-timeout:
			p.b.t.Fatalf("no problem has %q: %q", text, seen)
		}
	}
}

// Requests are the URLs of all requests.
func (p *Page) Requests() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return slices.Clone(p.requests)
}

// Eval evaluates an expression in the page, awaits the promise if it is one, and decodes the value into out, if that is not nil.
func (p *Page) Eval(expression string, out any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.b.call(p.session, "Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	}, &r)
	switch {
	case err != nil:
		return err
	case r.ExceptionDetails != nil:
		return fmt.Errorf("%s: %s %s", expression, r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
	case out == nil || len(r.Result.Value) == 0:
		return nil
	}
	return json.Unmarshal(r.Result.Value, out)
}

// Value evaluates an expression.
func (p *Page) Value(expression string, out any) {
	p.b.t.Helper()
	if err := p.Eval(expression, out); err != nil {
		p.b.t.Fatal(err)
	}
}

// Await waits until an expression is true.
func (p *Page) Await(expression string) {
	p.b.t.Helper()
	timeout := time.After(callTimeout)
	for tick := time.Tick(50 * time.Millisecond); ; {
		var holds bool
		err := p.Eval("Boolean("+expression+")", &holds)
		if err == nil && holds {
			return
		}
		select {
		case <-tick:
		case <-timeout:
			var text string
			_ = p.Eval("document.body.innerText", &text) // it is for the message only
			p.b.t.Fatalf("not true: %s (%v), problems %q; the page:\n%s", expression, err, p.Problems(), text)
		}
	}
}

// Size sets the size of the page, and the colour scheme: light or dark.
func (p *Page) Size(width, height int, scheme string) {
	p.b.t.Helper()
	p.Call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
	})
	p.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// Key presses a key, such as "j" or "ArrowRight".
func (p *Page) Key(key string) {
	p.b.t.Helper()
	down := map[string]any{"type": "rawKeyDown", "key": key}
	code := map[string]int{"Enter": 13, "Escape": 27}[key] // the browser acts on those by their code
	switch {
	case len(key) == 1:
		down["type"], down["text"] = "keyDown", key
	case key == "Enter":
		down["type"], down["text"] = "keyDown", "\r"
	}
	down["windowsVirtualKeyCode"] = code
	p.Call("Input.dispatchKeyEvent", down)
	p.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})
}

// Picture writes a picture of the page to a PNG file.
func (p *Page) Picture(path string) {
	p.b.t.Helper()
	var r struct{ Data string }
	err := p.b.call(p.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &r)
	var image []byte
	if err == nil {
		image, err = base64.StdEncoding.DecodeString(r.Data)
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, image, 0o644))
	}
	if err != nil {
		p.b.t.Fatal(err)
	}
}
