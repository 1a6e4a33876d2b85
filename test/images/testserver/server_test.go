package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.html"), []byte("from the directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	var exited []int
	srv := httptest.NewServer(newServer(dir, func(code int) { exited = append(exited, code) }))
	defer srv.Close()
	for _, step := range []struct {
		path   string
		status int
		body   string
	}{
		{"/", 200, "hello"},
		{"/nothing", 404, ""},
		{"/healthz", 200, "ok"},
		{"/readyz", 200, "ok"},
		{"/switch?healthy=false", 200, "healthy=false ready=true"},
		{"/healthz", 503, "switched off"},
		{"/readyz", 200, "ok"},
		{"/switch?healthy=true&ready=false", 200, "healthy=true ready=false"},
		{"/healthz", 200, "ok"},
		{"/readyz", 503, "switched off"},
		{"/switch?awake=true", 400, "awake"},
		{"/switch?ready=maybe", 400, "maybe"},
		{"/slow?seconds=0.01", 200, "done"},
		{"/slow", 400, "seconds"},
		{"/exit?code=300", 400, "code"},
		{"/exit?code=3", 200, ""},
		{"/env", 200, "uid="},
		{"/files/page.html", 200, "from the directory"},
	} {
		res, err := http.Get(srv.URL + step.path)
		if err != nil {
			t.Fatalf("get %s: %v", step.path, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("read %s: %v", step.path, err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != step.status || !strings.Contains(string(body), step.body) {
			t.Errorf("%s answered %d %q, want %d with %q", step.path, res.StatusCode, body, step.status, step.body)
		}
	}
	if len(exited) != 1 || exited[0] != 3 {
		t.Errorf("/exit?code=3: exit codes %v, want [3]", exited)
	}
}

func TestDribbleSendsBeforeItEnds(t *testing.T) {
	srv := httptest.NewServer(newServer("", nil))
	defer srv.Close()
	res, err := http.Get(srv.URL + "/dribble")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(res.Body, first); err != nil || first[0] != '.' {
		t.Errorf("first byte is %q, %v", first, err)
	}
}
