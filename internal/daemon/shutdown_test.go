package daemon_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
)

// TestHostShutdown stops a daemon, which listens on a socket of systemd, by its signal or by a client. Its pod stops only if the host is
// shutting down, or if the client requests it, and is kept either way. The socket stays. systemd may pass descriptors that are not stream
// sockets.
func TestHostShutdown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stopping, requested, restarted bool
		by                             string
	}{
		"the service stops":        {},
		"the host shuts down":      {stopping: true, restarted: true, by: "the start of the host"},
		"a client shuts pods down": {requested: true, restarted: true, by: "the start of the daemon"},
		"both at the same time":    {stopping: true, requested: true, restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.config.Socket, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			c := *h.config
			c.Pods.ShutdownGracePeriod = config.Duration("1s")
			ready, result := make(chan struct{}), make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				result <- daemon.Run(ctx, daemon.Options{
					Config: &c, Start: h.start, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
					Listeners:    []net.Listener{nil, socket},
					HostStopping: func(context.Context) (bool, error) { return test.stopping, nil },
				})
			}()
			awaitReady(t, ready, result)
			uid := h.create(t).Metadata.UID
			h.awaitRunning(t, uid)
			if test.requested {
				if err := h.client.ShutDownDaemon(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if test.stopping || !test.requested {
				stop()
			}
			await(t, result)
			stop()
			if e, stopped := errors.AsType[*api.StoppedError](h.client.Stopped()); test.requested && (!stopped || e.Pods != 0) {
				t.Errorf("record of the stop: %+v, want no pods that have not stopped", e)
			}
			if _, err := os.Stat(h.config.Socket); err != nil {
				t.Errorf("the socket of systemd: %v", err)
			}
			ctx, stop = context.WithCancel(t.Context())
			next := h.run(ctx, t, false, "1m")
			h.awaitRunning(t, uid)
			p, err := h.client.Pod(t.Context(), "web")
			if err != nil {
				t.Fatal(err)
			}
			if restarted := p.Status.ContainerStatuses[0].RestartCount == 1; restarted != test.restarted {
				t.Errorf("container was stopped: %v, want %v", restarted, test.restarted)
			}
			if by := startedBy(t, h); test.by != "" && by != test.by {
				t.Errorf("the pod was started by %q, want %q", by, test.by)
			}
			stop()
			await(t, next)
		})
	}
}

// startedBy returns who has requested the last start of the pod.
func startedBy(t *testing.T, h *host) (by string) {
	t.Helper()
	for e, err := range h.client.Events(t.Context(), &client.EventQuery{Pod: "web"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == api.EventPodStartRequested {
			by = e.Fields["by"]
		}
	}
	return by
}
