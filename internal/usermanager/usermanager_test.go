package usermanager

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestConnect tests that a connection fails without a systemd of the user, and in time if it does not answer.
func TestConnect(t *testing.T) {
	dir := t.TempDir()
	if m, err := Connect(t.Context(), dir, os.Getuid()); err == nil {
		m.Close()
		t.Error("connected without a socket")
	}
	if err := os.Mkdir(filepath.Join(dir, "systemd"), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "systemd/private"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if m, err := Connect(ctx, dir, os.Getuid()); err == nil {
		m.Close()
		t.Error("connected to what does not answer")
	}
}

// TestCommonParent tests the lowest common parent of cgroups.
func TestCommonParent(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{"/", "/a/b", "/"},
		{"", "/a/b", "/"},
		{"/a/b", "/a/c", "/a"},
		{"/a/b", "/a/bc/d", "/a"},
		{"/a/b/c", "/a/b", "/a/b"},
		{"/a/b", "/a/b", "/a/b"},
		{
			"/user.slice/user-1000.slice/session-1.scope", "/user.slice/user-1000.slice/user@1000.service/app.slice/podstead.scope",
			"/user.slice/user-1000.slice",
		},
	} {
		if got := commonParent(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: %q, want %q", test.a, test.b, got, test.want)
		}
	}
}

// TestWithin tests which cgroups are those of a scope.
func TestWithin(t *testing.T) {
	for group, want := range map[string]bool{
		"": false, "/": false, "/user.slice/session-1.scope": false, "/app.slice/pods.scope": true, "/app.slice/pods.scope/monitor": true,
		"/app.slice/other-pods.scope/monitor": false,
	} {
		if got := within(group, "pods.scope"); got != want {
			t.Errorf("%q: %v", group, got)
		}
	}
}

// TestMoveWithin tests that a process is moved by writing to its cgroup where that is possible, without a request to systemd.
func TestMoveWithin(t *testing.T) {
	mount := t.TempDir()
	for _, dir := range []string{"scope", "scope/daemon"} {
		if err := os.Mkdir(filepath.Join(mount, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := Scope{&Manager{nil, mount}, "podstead.scope", "/scope"}
	for _, leaf := range []string{"daemon", "monitor"} { // one that exists, and one that is created
		if err := s.Move(t.Context(), leaf, 4321); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(mount, "scope", leaf, "cgroup.procs"))
		if err != nil || string(text) != "4321" {
			t.Errorf("%s: %q, %v", leaf, text, err)
		}
	}
	if s.isPopulated() {
		t.Error("without cgroup.events, the scope is populated")
	}
	for name, text := range map[string]string{"cgroup.events": "populated 1\nfrozen 0\n", "cgroup.controllers": "cpu memory pids\n"} {
		if err := os.WriteFile(filepath.Join(mount, "scope", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !s.isPopulated() {
		t.Error("the scope is not populated")
	}
	list, err := s.Controllers()
	if diff := cmp.Diff([]string{"cpu", "memory", "pids"}, list); err != nil || diff != "" {
		t.Errorf("controllers: %v %s", err, diff)
	}
}
