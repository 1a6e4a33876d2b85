package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// activatedApp has a socket of systemd, which is reported as idle or not. The function reports whether a client connected.
func activatedApp(t *testing.T, idle bool) (a *app, stderr *bytes.Buffer, connected func() bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	clients := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			clients <- struct{}{}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("PODSTEAD_SOCKET", path)
	t.Setenv("PODSTEAD_CONFIG", "/dev/null")
	stderr = &bytes.Buffer{}
	a = &app{
		in: strings.NewReader(""), out: stderr, err: stderr,
		idle: func(_ context.Context, socket string) bool { return idle && socket == path },
	}
	return a, stderr, func() bool {
		select {
		case <-clients:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	}
}

// A connection to a socket of systemd would start the daemon.
func TestDaemonStopStartsNoDaemon(t *testing.T) {
	a, out, connected := activatedApp(t, true)
	if code := a.run(t.Context(), []string{"daemon", "stop"}); code != 0 || out.String() != "podstead: no daemon is running\n" {
		t.Errorf("exit code %d, %s", code, out)
	}
	if connected() {
		t.Error("the command connected to the socket")
	}
	a, _, connected = activatedApp(t, false)
	a.run(t.Context(), []string{"daemon", "stop"})
	if !connected() {
		t.Error("the command did not connect to the socket of a daemon")
	}
}

// TestStartsNoDaemon runs the commands that read from a daemon only if one runs, and completion.
func TestStartsNoDaemon(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web.toml")
	if err := os.WriteFile(file, []byte("waitFor = [\"pod:db:ready\"]\nhostname = \"web\"\n"+script("", runs)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"version", "doctor", "validate " + file, "support-bundle -o " + filepath.Join(dir, "b.tar.gz"),
		"__complete logs w", "__complete logs web -c a", "__complete volume rm d", "__complete image rm b",
		"__complete rollout undo web --to-generation 1", "__complete wait web --for=condition=R",
	} {
		a, out, connected := activatedApp(t, true)
		(&testHost{dir: dir}).setDirs(t)
		a.run(t.Context(), strings.Fields(line))
		if connected() {
			t.Errorf("podstead %s connected to the socket: %s", line, out)
		}
	}
}

// TestUnitStopAtShutdown stops a unit while the host shuts down and no daemon responds.
func TestUnitStopAtShutdown(t *testing.T) {
	for _, idle := range []bool{true, false} {
		a, out, connected := activatedApp(t, idle)
		a.hostStopping = func(context.Context) (bool, error) { return true, nil }
		if code := a.run(t.Context(), []string{"unit", "stop", "web"}); code != 0 || out.Len() != 0 {
			t.Errorf("idle %v: exit code %d, %s", idle, code, out)
		}
		if got := connected(); got == idle {
			t.Errorf("idle %v: connected %v", idle, got)
		}
	}
}
