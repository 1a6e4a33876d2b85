package server_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/server"
)

func TestListen(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	t.Run("path too long", func(t *testing.T) {
		_, err := server.Listen(t.Context(), filepath.Join(dir, strings.Repeat("x", 120)))
		if err == nil || !strings.Contains(err.Error(), "path too long: must be at most ") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("path of a regular file", func(t *testing.T) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("socket in use", func(t *testing.T) {
		path := filepath.Join(dir, "live")
		l, err := server.Listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != 0o660 {
			t.Errorf("mode %v, %v, want 0660", st.Mode(), err)
		}
		if _, err := server.Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another process is listening") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("socket that systemd has replaced", func(t *testing.T) {
		path := filepath.Join(dir, "replaced")
		l, err := server.ListenReadOnly(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		next, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatalf("the socket of systemd: %v", err)
		}
		_ = c.Close()
	})
	t.Run("stale socket", func(t *testing.T) {
		path := filepath.Join(dir, "stale")
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		l, err := server.Listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the socket still exists after Close: %v", err)
		}
	})
}
