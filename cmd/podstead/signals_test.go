package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// signalTimeout bounds what must happen; no test waits for it to pass.
const signalTimeout = time.Minute

// wantKilled waits for the end of a program that SIGTERM must have ended.
func wantKilled(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	defer time.AfterFunc(signalTimeout, func() { _ = cmd.Process.Kill() }).Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("%v: %v, want SIGTERM", cmd.Args, err)
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("%v: %v, want SIGTERM", cmd.Args, exit)
	}
}

// A signal ends a command whose output blocks because the next program of a pipeline does not read it.
func TestSignalEndsBlockedOutput(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "podstead.toml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: signalTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/version":
			_ = json.NewEncoder(w).Encode(api.Version{})
		case "/v1/pods/web":
			_ = json.NewEncoder(w).Encode(api.Pod{})
		default:
			for { // until the client is lost
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}
	})}
	go func() { _ = server.Serve(l) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	for _, line := range []string{"cp web:/data -", "image export -o - localhost/a:1"} {
		cmd := exec.Command("podstead", strings.Fields(line)...)
		cmd.Env = append(os.Environ(), "PODSTEAD_SOCKET="+l.Addr().String(), "PODSTEAD_CONFIG="+config)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // the rest is never read
			t.Error(err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		wantKilled(t, cmd)
	}
}

// deaf is a program that does not react to the end of its context.
func deaf() {
	ctx, cancel := untilSignal(context.Background())
	defer cancel()
	fmt.Println("running")
	<-ctx.Done()
	fmt.Println("ended")
	select {}
}

func TestSecondSignalKills(t *testing.T) {
	cmd := exec.Command("deaf")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"running", "ended"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("%q, %v, want %q", lines.Text(), lines.Err(), want)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	wantKilled(t, cmd)
}
