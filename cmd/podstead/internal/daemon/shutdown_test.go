package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/cmd/podstead/internal/daemon"
)

// TestHostShutdown stops a daemon, which listens on a socket of systemd, by its signal. Its pod stops only if the host is shutting down,
// and the socket stays. systemd may pass descriptors that are not stream sockets.
func TestHostShutdown(t *testing.T) {
	t.Parallel()
	for _, stopping := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopping %v", stopping), func(t *testing.T) {
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
					Config: &c, Start: h.start, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }, Listeners: []net.Listener{nil, socket},
					HostStopping: func(context.Context) (bool, error) { return stopping, nil },
				})
			}()
			awaitReady(t, ready, result)
			uid := h.create(t).Metadata.UID
			h.awaitRunning(t, uid)
			stop()
			await(t, result)
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
			if restarted := p.Status.ContainerStatuses[0].RestartCount == 1; restarted != stopping {
				t.Errorf("host is stopping: %v, container was stopped: %v", stopping, restarted)
			}
			stop()
			await(t, next)
		})
	}
}
