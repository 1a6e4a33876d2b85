package daemon_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/runtime/engine"
)

// holder starts a process with a command line that has a file open until it is signalled.
func holder(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("sh", append([]string{"-c", "echo; read line"}, args...)...)
	cmd.ExtraFiles = []*os.File{file}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // the program runs, with its command line
		t.Fatal(err)
	}
	return cmd
}

// TestActivatedServiceTakesOver starts a daemon with the sockets of systemd, while another process holds the lock. Only a daemon that was
// started on demand is stopped.
func TestActivatedServiceTakesOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string
		locked string // the file that the process has open
		stops  bool
		gone   bool // another process holds the lock
	}{
		"on demand":            {[]string{"daemon", "--on-demand"}, "lock", true, false},
		"service":              {[]string{"daemon"}, "lock", false, false},
		"not the lock's owner": {[]string{"daemon", "--on-demand"}, "other", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			lock := filepath.Join(h.config.RunDir, "lock")
			if err := os.WriteFile(lock, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := holder(t, filepath.Join(h.config.RunDir, test.locked), test.args...)
			socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.config.Socket, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			exited := make(chan error, 1)
			if test.stops {
				go func() { exited <- cmd.Wait() }()
			}
			tries := 0
			start := func(ctx context.Context, c *config.Config, l *slog.Logger) (daemon.Runtime, error) {
				tries++
				select {
				case err := <-exited:
					if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
						t.Errorf("the other daemon: %v, want SIGTERM", err)
					}
					return h.start(ctx, c, l)
				default:
				}
				if test.gone && tries == 3 {
					return h.start(ctx, c, l)
				}
				return nil, &engine.ErrInUse{Path: lock, Pid: cmd.Process.Pid}
			}
			c := *h.config
			ready, result := make(chan struct{}), make(chan error, 1)
			go func() {
				result <- daemon.Run(ctx, daemon.Options{
					Config: &c, Start: start, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
					Listeners: []net.Listener{socket},
				})
			}()
			if !test.stops && !test.gone {
				if err := <-result; err == nil || cmd.Process.Signal(syscall.Signal(0)) != nil {
					t.Errorf("error %v, and the service was signalled", err)
				}
				return
			}
			awaitReady(t, ready, result)
			cancel()
			await(t, result)
			if test.gone && cmd.Process.Signal(syscall.Signal(0)) != nil {
				t.Error("a process that does not hold the lock was signalled")
			}
		})
	}
}
