package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/monitor"
)

func TestMonitor(t *testing.T) {
	dir := t.TempDir()
	const program = "/usr/bin/podstead-monitor"
	want := func(ctx context.Context, grade Grade, detail string) {
		t.Helper()
		if r := monitorIn(ctx, dir, program); r.grade != grade || !strings.Contains(r.detail, detail) || r.hint == "" && grade != OK {
			t.Errorf("%s %q with hint %q, want %s %q", r.grade, r.detail, r.hint, grade, detail)
		}
	}
	want(t.Context(), OK, "not running")
	record := filepath.Join(monitor.ContainersDir(dir), "c", "container.json")
	if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
		t.Fatal(err)
	}
	want(t.Context(), Warn, "connect to the monitor")

	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, monitor.Socket), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	accepted := make(chan *net.UnixConn, 1)
	go func() {
		c, _ := listener.AcceptUnix()
		_, _ = c.Read(make([]byte, 1000)) // it does not answer
		cancel()
		accepted <- c
	}()
	want(ctx, Warn, "canceled")
	_ = (<-accepted).Close()
	go func() {
		c, _ := listener.AcceptUnix()
		_, _ = c.Read(make([]byte, 1000))
		_, _ = c.Write([]byte(`{"id":1,"body":{"version":"v1","pid":7,"monitors":3}}`))
		accepted <- c
	}()
	want(t.Context(), OK, program+", running, version v1, pid 7, starts since boot: 3")
	_ = (<-accepted).Close()

	other := filepath.Join(t.TempDir(), "podstead-monitor") // this process is the monitor
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho '{\"version\":\"v2\"}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	go func() {
		c, _ := listener.AcceptUnix()
		_, _ = c.Read(make([]byte, 1000))
		_, _ = fmt.Fprintf(c, `{"id":1,"body":{"version":"v1","pid":%d,"keeper":%d,"monitors":3}}`, os.Getpid(), os.Getpid())
		accepted <- c
	}()
	r := monitorIn(t.Context(), dir, other)
	if r.grade != Warn || r.hint == "" || !strings.Contains(r.detail, "v1 runs") || !strings.Contains(r.detail, other+" has version v2") {
		t.Errorf("another program: %s %q with hint %q", r.grade, r.detail, r.hint)
	}
	_ = (<-accepted).Close()
}
