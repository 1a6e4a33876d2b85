package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInside(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(t.TempDir(), "note")
	if err := os.WriteFile(note, []byte("a note"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(newServer("", nil))
	defer srv.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- echo(udp) }()
	for _, test := range []struct {
		page, key, value string
		status           int
		body             string
	}{
		{"/whoami", "", "", 200, name + " 127.0.0.1\n"},
		{"/datagram", "to", udp.LocalAddr().String(), 200, name + " 127.0.0.1\n"},
		{"/datagram", "to", "127.0.0.1", 502, "missing port"},
		{"/fetch", "url", srv.URL + "/healthz", 200, "ok\n"},
		{"/fetch", "url", srv.URL + "/nothing", 404, "404"},
		{"/fetch", "url", "http://127.0.0.1:1/", 502, "refused"},
		{"/fetch", "url", ":", 400, "missing protocol"},
		{"/lookup", "host", "127.0.0.9", 200, "127.0.0.9\n"},
		{"/lookup", "host", "", 404, "no such host"},
		{"/file", "path", note, 200, "a note"},
		{"/file", "path", note + "s", 404, "no such file"},
	} {
		res, err := http.Get(srv.URL + test.page + "?" + url.Values{test.key: {test.value}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != test.status || !strings.Contains(string(body), test.body) {
			t.Errorf("%s of %q answered %d %q, want %d with %q", test.page, test.value, res.StatusCode, body, test.status, test.body)
		}
	}
	if err := udp.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("echo returned %v", err)
	}
}

// TestExitMessage checks the termination message of /exit.
func TestExitMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(path, nil, 0o600); err != nil { // the runtime creates the file
		t.Fatal(err)
	}
	var exited []int
	srv := httptest.NewServer(newServer("", func(code int) { exited = append(exited, code) }))
	defer srv.Close()
	for _, file := range []string{path, filepath.Join(path, "none")} {
		res, err := http.Get(srv.URL + "/exit?" + url.Values{"code": {"3"}, "message": {"why"}, "file": {file}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if failed := file != path; failed != (res.StatusCode == 500) {
			t.Errorf("a message to %s answered %d", file, res.StatusCode)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "why" || len(exited) != 1 || exited[0] != 3 {
		t.Errorf("message %q, %v, exit codes %v, want [3]", text, err, exited)
	}
}
