package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// open opens a connection to a socket and sends a request, without reading the response.
func open(t *testing.T, socket, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: podstead\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return c
}

// header reads the status of the response on a connection.
func header(t *testing.T, c net.Conn) int {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // the stream goes on until the connection is closed
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}

// TestConnectionLimit fills the read-only socket. Further readers are rejected with a reason, the API socket serves on, and a connection
// that ends makes room.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	var conns []net.Conn
	for range server.MaxReaders {
		c := open(t, d.socket+"-ro", "/v1/events?follow=true")
		conns = append(conns, c)
	}
	for _, c := range conns {
		if status := header(t, c); status != http.StatusOK {
			t.Fatalf("status %d below the limit", status)
		}
	}
	reader := client.New(d.socket+"-ro", "podstead get")
	defer reader.Close()
	_, err := reader.Pods(t.Context())
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusTooManyRequests || e.Reason != api.ReasonTooManyRequests ||
		e.Hint == "" {
		t.Errorf("one reader too many: %v", err)
	}
	if _, err := d.client.Pods(t.Context()); err != nil {
		t.Errorf("the API socket: %v", err)
	}
	_ = conns[0].Close()
	until(t, "there is room after a reader has left", func() bool {
		_, err := reader.Pods(t.Context())
		return err == nil
	})
}

// TestIdleConnections opens more idle connections than there can be. They give way: a client is served at once. The oldest one is closed
// long before the time without a request has passed.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	for _, socket := range []string{d.socket, d.socket + "-ro"} {
		var oldest net.Conn
		for range 1200 {
			c, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if oldest == nil {
				oldest = c
			}
		}
		daemon := client.New(socket, "podstead get")
		defer daemon.Close()
		for range 3 {
			if _, err := daemon.Pods(t.Context()); err != nil {
				t.Errorf("%s with idle connections: %v", socket, err)
			}
		}
		if err := oldest.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := oldest.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: read on the oldest idle connection: %v, want that it was closed", socket, err)
		}
	}
}

// TestHeaderLimit sends a header that is too large.
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	c, err := net.Dial("unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_, _ = fmt.Fprintf(c, "GET /v1/health HTTP/1.1\r\nHost: podstead\r\nX: %s\r\n\r\n", strings.Repeat("x", 80<<10))
	}()
	if status := header(t, c); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", status)
	}
}

// TestBodyLimit sends a body that is too large.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	status, text := d.request(t, "POST", "/v1/pods", `{"text":"`+strings.Repeat("x", 9<<20)+`"}`)
	if status != http.StatusBadRequest || !strings.Contains(text, "too large") {
		t.Errorf("%d %s", status, text)
	}
}

// TestSlowRequests checks that a client that sends a part of a header or of a body gets a response, and is disconnected.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	const body = " HTTP/1.1\r\nHost: podstead\r\nContent-Length: 100\r\n\r\n{"
	tests := []struct{ name, socket, text, want string }{
		{"header", d.socket, "GET /v1/pods HT", "400 Bad Request"},
		{"body", d.socket, "POST /v1/files" + body, `"reason":"BadRequest"`},
		{"body of a request with an unknown parameter", d.socket, "POST /v1/files?x=1" + body, `"field":"x"`},
		{"body of a request that is not allowed", d.socket + "-ro", "POST /v1/files" + body, `"reason":"Forbidden"`},
		{"archive of a request with an invalid parameter", d.socket, "POST /v1/images/import?whileUsed=x" + body, `"status":`},
	}
	var sent []net.Conn
	for _, test := range tests {
		c, err := net.Dial("unix", test.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, test.text); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, c)
	}
	for i, test := range tests {
		if err := sent[i].SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(sent[i]); err != nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: response %q, %v; want %s and the end of the connection", test.name, text, err, test.want)
		}
	}
}

// followers is the number of clients that follow streams. Half of them never read.
const followers = 200

// mark is in the events of a test that are large enough to fill the buffer of a socket.
const mark = "marked event"

// follower is a client that reads a stream.
type follower struct{ lines, marked atomic.Int64 }

// follow starts a client that reads a stream until it ends.
func (d *testDaemon) follow(t *testing.T, path string) *follower {
	t.Helper()
	c, f := open(t, d.socket, path), &follower{}
	go func() {
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return
		}
		defer r.Body.Close()
		for lines := bufio.NewReader(r.Body); ; f.lines.Add(1) {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			if bytes.Contains(line, []byte(mark)) {
				f.marked.Add(1)
			}
		}
	}()
	return f
}

// until waits until a condition is met, and fails with what was awaited.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	timeout := time.After(testTimeout)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !met() {
		select {
		case <-again.C:
		case <-timeout:
			t.Fatalf("timeout: %s", what)
		}
	}
}

// heap returns the size of the heap after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFollowers has 200 clients that follow events or output, half of each of which never read. The others receive everything, requests
// are served, the memory is bounded, and the clients that do not read are disconnected by the write timeout. Nothing remains of them.
func TestFollowers(t *testing.T) {
	server.SetWriteTimeout(t, 10*time.Second)
	const lines = 2000
	program := fakeruntime.Program{Runs: time.Hour}
	for range lines {
		program.Output = append(program.Output, fakeruntime.Line{Text: strings.Repeat("x", 500)})
	}
	d := newTestDaemon(t, fakeruntime.Options{
		Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) { return program, true },
	})
	uid := d.create(t, file("loud", app("main", "loud"))).Metadata.UID
	d.await(t, uid, "start", ready)
	d.client.Close()
	before, goroutines := heap(), runtime.NumGoroutine()
	const output, events = "/v1/pods/loud/output?follow=true", "/v1/events?follow=true"
	readers := map[string][]*follower{}
	var silent []net.Conn
	for range followers / 4 {
		for _, path := range []string{output, events} {
			silent = append(silent, open(t, d.socket, path))
			readers[path] = append(readers[path], d.follow(t, path))
		}
	}
	const marked = 24 // with those of the pods below fewer than the daemon keeps: none of them may be missed
	for range marked {
		d.supervisor.Events().Add(event.Event{Level: api.EventNormal, Pod: "loud", Message: mark + strings.Repeat("x", 16<<10)})
	}
	for i := range 3 { // also beside clients that do not read
		name := fmt.Sprintf("beside-%d", i)
		uid := d.create(t, file(name, app("main", "beside"))).Metadata.UID
		d.await(t, uid, "start", ready)
		if err := d.client.Stop(t.Context(), name, client.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil {
			t.Errorf("stop a pod beside %d clients: %v", followers, err)
		}
	}
	for path, want := range map[string]int64{output: lines, events: marked} {
		for i, r := range readers[path] {
			until(t, fmt.Sprintf("follower %d of %s has read %d of %d lines", i, path, r.lines.Load(), want),
				func() bool { return r.lines.Load() >= want })
		}
	}
	for i, r := range readers[events] {
		until(t, fmt.Sprintf("follower %d of events has read %d of %d events", i, r.marked.Load(), marked),
			func() bool { return r.marked.Load() >= marked })
	}
	const perClient = 256 << 10
	if grown := heap() - before; grown > followers*perClient {
		t.Errorf("the heap has grown by %d KiB for %d clients", grown>>10, followers)
	}
	d.client.Close()
	until(t, "the daemon has disconnected the clients that do not read", func() bool { return d.server.Connections() <= followers/2 })
	for _, c := range silent { // what is in the buffer of the socket, and the end of the connection
		if err := c.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) || n > lines*600 {
			t.Fatalf("a client that did not read: %d bytes, %v", n, err)
		}
	}
	d.closeServer()
	until(t, "the goroutines of the clients have ended", func() bool { return runtime.NumGoroutine() < goroutines+followers/10 })
}
